"""Checks of the core: each raises or warns before a model would silently train in a wrong way.

A check raises, warns or does nothing, so it changes no number of a finished training. The digests of runs therefore leave out this file
and its calls on plain names (:mod:`poet.launch.sources`). ``tests/launch/test_sources.py`` keeps the checks in this form.
"""

import warnings
from collections.abc import Mapping, Sequence, Set

import torch
from torch import nn

#: Optimizers whose state does not start at zero, so that zeroing it at a merge is no fresh start.
_STARTS_ELSEWHERE = (torch.optim.ASGD, torch.optim.NAdam, torch.optim.Rprop)
#: Only POET layers have this method. Their class cannot be imported here, because it imports this module.
_MERGE = "merge_and_reinitialize"
#: Attributes with the hooks of a layer or of its weight; accelerate has one of its own.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_post_accumulate_grad_hooks", "_hf_hook")


def _layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """(name, layer) of every POET layer."""
    return [(name or "(root)", layer) for name, layer in model.named_modules() if hasattr(layer, _MERGE)]


def _factors(model: nn.Module) -> list[nn.Parameter]:
    """Parameters of R and P of every POET layer, without sides that are the identity."""
    return [p for _, layer in _layers(model) for p in (layer.skew_r, layer.skew_p) if p is not None]


def _written(model: nn.Module) -> list[int]:
    """Identities of what a merge writes: R, P and base weights."""
    return [id(p) for _, layer in _layers(model) for p in (layer.base_weight, layer.skew_r, layer.skew_p) if p is not None]


def _warn(text: str) -> None:
    """Warns where the check's caller was called."""
    return warnings.warn(text, stacklevel=4)


def _real(tensor: torch.Tensor) -> bool:
    """Whether values can be read: not of shards, meta or fake tensors."""
    return type(tensor.detach()) is torch.Tensor and not tensor.is_meta


def _optimized(optimizer: torch.optim.Optimizer) -> set[int]:
    """Identities of the parameters that an optimizer has."""
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


def check_config(config: object, wanted: type) -> None:
    """Raises TypeError where ``config`` is not an instance of ``wanted``."""
    if not isinstance(config, wanted):
        raise TypeError(f"config takes a {wanted.__name__} such as {wanted.__name__}(block_size=64), got {config!r:.80}")


def check_model(model: object) -> None:
    """Raises TypeError where ``model`` is no module, ValueError where it is or has one of DistributedDataParallel."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"apply_poet takes one nn.Module, got {model!r:.80}")
    if any(isinstance(module, nn.parallel.DistributedDataParallel) for module in model.modules()):
        raise ValueError("apply_poet comes before DistributedDataParallel, which would not synchronize new R and P: give it the wrapped model")


def check_names(exclude: object) -> None:
    """Raises TypeError where ``exclude`` is no collection of names: a generator would be used up by its first reader."""
    if not isinstance(exclude, (str, Sequence, Set)) or any(not isinstance(name, str) for name in exclude):
        raise TypeError(f"exclude is a sequence of names such as ('lm_head',), got {exclude!r:.80}")


def check_options(config: object, wanted: type, own: Sequence[str]) -> None:
    """Raises ValueError where a ``wanted`` (POETConfig) sets a size that its variant does not read. It reads those in ``own``. A subclass may set both."""
    if type(config) is wanted and "block_size" not in own and config.block_size != 256:
        raise ValueError(f"POETConfig.block_size is not read with variant={config.variant!r}: set variant='bs', or leave it out")
    if type(config) is wanted and "budget" not in own and config.budget != 0.5:
        raise ValueError(f"POETConfig.budget is not read with variant={config.variant!r}: set variant='fs', or leave it out")


def check_replaced(config: object, chosen: Sequence[tuple[str, nn.Linear]]) -> None:
    """Raises ValueError where a layer of ``chosen``, (name, layer), has hooks, is sharded, is no plain linear layer, or keeps zeros. Warns where frozen weights would be drawn anew."""
    if any(hasattr(layer.weight, "device_mesh") for _, layer in chosen):
        raise ValueError("apply_poet comes before fully_shard, which would not synchronize new R and P: shard the wrapped model")
    if any(getattr(owner, kind, None) for _, layer in chosen for owner in (layer, layer.weight) for kind in _HOOKS):
        raise ValueError("apply_poet replaces layers that have hooks, and the hooks would be lost: register them after apply_poet")
    if odd := [name for name, layer in chosen if layer.weight.shape != (layer.out_features, layer.in_features) or 0 in layer.weight.shape or layer.weight.dtype.is_complex or "forward" in vars(layer)]:
        raise ValueError(f"layer {odd[0] or '(root)'} has a weight of another shape than its sizes say, an empty or a complex one, or a forward of its own: name it in exclude")
    if config.init == "keep" and (zero := [name for name, layer in chosen if layer.weight.requires_grad and _real(layer.weight) and not layer.weight.any()]):
        raise ValueError(f"R W0 P stays zero where W0 is, as in {zero[0] or 'the layer'} ({len(zero)} such layers, as lora_B of PEFT): name them in exclude")
    if config.init != "keep" and any(not layer.weight.requires_grad for _, layer in chosen):
        _warn("apply_poet draws frozen weights anew, and freezes their R and P: POETConfig(init='keep') keeps the weights, and exclude=(...) the layers")


def check_head(model: nn.Module, chosen: Sequence[tuple[str, nn.Linear]]) -> None:
    """Warns where a layer of ``chosen``, (name, layer), is the output head of a model of transformers, which the paper trains as it is."""
    if head := [name for name, layer in chosen if hasattr(model, "get_output_embeddings") and layer is model.get_output_embeddings()]:
        _warn(f"apply_poet wraps the output head, {head[0]}, which the paper trains as it is: name it in exclude")


def check_permutations(state_dict: Mapping[str, object], prefix: str) -> None:
    """Raises ValueError where the permutations of a saved layer were cast to half precision, which rounds them."""
    if any(getattr(state_dict.get(prefix + name), "dtype", None) in (torch.bfloat16, torch.float16) for name in ("permutation_in", "permutation_out")):
        raise ValueError(f"the permutations of layer {prefix[:-1] or '(root)'} were cast to half precision, which rounds them: cast only what is floating-point in the state dict")


def check_wrapped(model: nn.Module) -> None:
    """Raises ValueError where a model has no POET layer, or one whose base weight is not frozen: weight decay could change it."""
    if not _layers(model):
        raise ValueError("the model has no POET layer: call apply_poet first; after export_dense, which works in place, training cannot go on (export a copy.deepcopy)")
    if any(layer.base_weight.requires_grad for _, layer in _layers(model)):
        raise ValueError("the base weight of a POET layer is not frozen, as after model.requires_grad_(True), and could decay: call base_weight.requires_grad_(False) on each")


def check_trained(model: nn.Module) -> None:
    """Warns where R and P of every POET layer are frozen, as ``apply_poet`` leaves those of frozen weights, or where some are in half precision."""
    if (factors := _factors(model)) and not any(p.requires_grad for p in factors):
        _warn("R and P of every POET layer are frozen, so they would not be trained: call requires_grad_(True) on each of poet.optim.poet_parameters(model)")
    if any(p.requires_grad and p.dtype in (torch.bfloat16, torch.float16) for p in _factors(model)):
        _warn("R and P are in half precision, which loses small steps of them: load the model in float32, and train under autocast")


def check_turned(model: nn.Module) -> None:
    """Warns, at a merge, where a trained R or P has not moved since the last one."""
    if still := [name for name, layer in _layers(model) if any(p.requires_grad and _real(p) and not p.any() for p in _factors(layer))]:
        _warn(f"R or P of {len(still)} POET layers has not moved since the last merge ({still[0]}, ...): unused (name it in exclude), replaced, or an optimizer that cannot start from zeros")


def check_index(number: object) -> None:
    """Raises TypeError where a seed or a step is no int."""
    if not isinstance(number, int):  # integers of numpy overflow in the seed of a merge
        raise TypeError(f"seed and step are of type int, got {number!r:.80}")


def check_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Raises TypeError where this is no optimizer, ValueError where it has none of the trained R and P, or shards of some (FSDP2) that the model
    holds gathered, or where layers share what a merge writes. Warns where it has only a part of R and P, or decays some."""
    if not hasattr(optimizer, "param_groups"):
        raise TypeError(f"MergeSchedule takes one optimizer of torch, got {optimizer!r:.80}")
    if any(hasattr(layer, "parametrizations") for _, layer in _layers(model)) or len(set(_written(model))) < len(_written(model)):
        raise ValueError("R, P or the base weight of a POET layer is tied to another's or parametrized, and a merge would not keep the function: untie it, or remove the parametrization")
    if any(hasattr(p, "device_mesh") for group in optimizer.param_groups for p in group["params"]) and any(
        p.requires_grad and not hasattr(p, "device_mesh") and id(p) not in _optimized(optimizer) for p in _factors(model)):  # fmt: skip
        raise ValueError("R and P are gathered, as fully_shard leaves those of the root module after an evaluation, and a merge would change copies: call model.reshard()")
    if (trained := {id(p) for p in _factors(model) if p.requires_grad}) and not trained & _optimized(optimizer):
        raise ValueError("the optimizer has none of the model's R and P: build it after apply_poet and load_state_dict(..., assign=True), from parameter_groups(model, ...)")
    if trained - _optimized(optimizer):
        _warn("the optimizer has only a part of the model's R and P: a merge resets its state alone, and what no optimizer has is not trained: build one from parameter_groups")
    if decayed := {id(p) for group in optimizer.param_groups if group.get("weight_decay") for p in group["params"]} & {id(p) for p in _factors(model)}:
        _warn(f"weight decay shrinks R and P towards the identity ({len(decayed)} parameters): build the optimizer from parameter_groups, which gives them none")


def check_resets(optimizer: torch.optim.Optimizer, reset_state: bool) -> None:
    """Raises ValueError where a merge would zero state that does not start at zero, or could not reach the state."""
    if isinstance(getattr(optimizer, "optimizer", optimizer), torch.optim.LBFGS):  # accelerate wraps one
        raise ValueError("LBFGS keeps one history of all parameters, which means nothing after a merge: use another optimizer, such as AdamW")
    if reset_state and (inner := [
        held for owner in (optimizer, getattr(optimizer, "optimizer", None)) for held in getattr(owner, "__dict__", {}).values()
        if isinstance(held, torch.optim.Optimizer) and held.state is not optimizer.state
    ]):  # fmt: skip
        raise ValueError(f"{type(inner[0]).__name__} is inside another optimizer, where a merge does not reset its state: use it alone, or POETConfig(reset_state=False)")
    if reset_state and any(group.get("momentum") and group.get("dampening") for group in optimizer.param_groups):
        raise ValueError("SGD dampens every gradient but the first, which a merge cannot make it forget: set dampening=0, or POETConfig(reset_state=False)")
    if reset_state and (isinstance(getattr(optimizer, "optimizer", optimizer), _STARTS_ELSEWHERE) or any(group.get("initial_accumulator_value") for group in optimizer.param_groups)):
        raise ValueError(f"{type(optimizer).__name__} has state that does not start at zero, as it would after a merge: use AdamW, or POETConfig(reset_state=False)")


def check_state(optimizer: torch.optim.Optimizer, reset_state: bool = True) -> None:
    """Raises ValueError where a merge would zero the code book of 8-bit state, which all parameters share, or would miss a count of steps."""
    if reset_state and any("step" in group for group in optimizer.param_groups):  # as apex's FusedAdam has from its first step on
        raise ValueError(f"{type(optimizer).__name__} counts steps in its groups, where no merge resets them: use torch's AdamW, or POETConfig(reset_state=False)")
    if reset_state and any("qmap" in key for state in optimizer.state.values() for key in state):
        raise ValueError(f"{type(optimizer).__name__} keeps 8-bit state, whose shared code book a merge would zero: use torch's AdamW, or POETConfig(reset_state=False)")
