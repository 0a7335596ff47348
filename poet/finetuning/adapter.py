"""POET adapters: what finetuning learned, without the base model.

An adapter has the parameters of R and P and the coordinates that they act on. The weight between them is that of the base
model, so this works only while nothing is merged: a merge puts R and P into the weight.

A merge is noticed from the weights alone. :func:`base_digests` takes a digest of each weight of the plain model, and
refuses a wrapped one. :func:`save_adapter` takes the digests of the frozen weights again, with rows and columns put back in
the order of ``nn.Linear``, and compares. A merge of an R or P that is not the identity changes the weight. A merge of identities
changes only the order, and the adapter stays right. The digests go into the adapter, and :func:`load_adapter` compares them
with the model that it is given. After a restart they are computed again from the base model.

An adapter is a folder of two files. ``adapter.safetensors`` has a part of the model's state dict, with permutations as int32.
``adapter.json`` has the configuration and the digests.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, fields
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from poet.config import POETConfig
from poet.linear import POETLinear
from poet.model import _replace as replace_module
from poet.model import allow_saving, apply_poet, poet_layers
from poet.system.errors import UserError
from poet.system.files import atomic_path, write_text
from poet.wrapping import is_named

WEIGHTS = "adapter.safetensors"
CONFIGURATION = "adapter.json"
#: Version of the two files. A change that older code cannot read needs a new number.
FORMAT = 1
#: For each side of a layer: the dimension of the (out, in) weight, and the names of the parameter and the permutation.
SIDES = ((0, "skew_p", "permutation_out"), (1, "skew_r", "permutation_in"))


class AdapterError(UserError, ValueError):
    """An adapter cannot be saved or loaded."""


def base_digests(model: nn.Module) -> dict[str, str]:
    """sha256 of each weight and persistent buffer of a plain model, by name, for :func:`save_adapter` to compare with.

    Args:
        model: the pretrained model, before :func:`poet.apply_poet`.

    Raises:
        AdapterError: the model has POET layers.
    """
    if any(poet_layers(model)):
        raise AdapterError("base_digests got a model with POET layers: call it on the plain base model, before apply_poet")
    return {name: _digest(tensor) for name, tensor in _plain_tensors(model)}


def save_adapter(model: nn.Module, folder: Path | str, base: Mapping[str, str], also: Sequence[str] = ()) -> None:
    """Write the parameters of R and P of every POET layer, its bias if it was trained, and the weights that ``also`` names.

    Args:
        model: a model that went through ``apply_poet`` with ``init="keep"``, and in which nothing was merged since; not sharded.
        folder: made if it is missing. An adapter in it is replaced.
        base: :func:`base_digests` of the plain model.
        also: weights outside the POET layers to save whole, such as a new head: names of modules or weights, in full or by the last
            parts ("score", "LayerNorm"). A tied weight goes by the first of its names.

    Raises:
        AdapterError: there is no POET layer; ``also`` is no sequence of names; the base weight of a layer is not the base model's, because it was
            merged or drawn anew; a weight outside changed and is not named; or a name of ``also`` has no weight.
        DiskError: the folder cannot be written.
    """
    layers = dict(poet_layers(model))
    if not layers:
        raise AdapterError("save_adapter found no POET layer in the model: call apply_poet(model, POETConfig(init='keep')) before training")
    if isinstance(also, str) or not isinstance(also, (Sequence, Set)):  # a generator would be used up by its first reader
        raise AdapterError(f"also is a sequence of names such as ('score',), got {also!r:.80}")
    named, digests, moved = {}, {}, []
    for name, tensor in _plain_tensors(model):
        owner, _, key = name.rpartition(".")
        digest = _digest(tensor)
        same = digest == base.get(name)
        if owner in layers and key == "weight":
            if name not in base:
                raise AdapterError(
                    f"base has no {name}: call base_digests on the plain model before apply_poet, and give save_adapter the model itself, not "
                    "its wrapper (torch.compile, DataParallel, DDP)"
                )
            if not same:
                raise AdapterError(_why_other(owner, layers[owner]))
        elif any(is_named(name, entry) for entry in also) or (owner in layers and not same):
            named[name] = tensor
            continue
        elif not same:
            moved.append(name)
        digests[name] = digest
    if moved:
        more = f" and {len(moved) - 1} more" if moved[1:] else ""
        raise AdapterError(f"{moved[0]}{more} changed in training and would be lost: name what changed in also=(...), or keep it from changing")
    for entry in also:
        if not any(is_named(name, entry) for name in named):
            raise AdapterError(f"also: no weight outside the POET layers is called {entry!r}")
    content = safetensors.torch.save({name: t.detach().cpu().contiguous() for name, t in (named | _factors(layers)).items()})
    groups = defaultdict(list)
    for name, layer in layers.items():
        own = {field.name: getattr(layer.config, field.name) for field in fields(POETConfig)}  # a subclass, such as the suite's, has more
        groups[POETConfig(**own)].append(name)
    adapter = {
        "format": FORMAT,
        "groups": [{"config": asdict(config), "layers": names} for config, names in groups.items()],
        "base": digests,
        "weights": hashlib.sha256(content).hexdigest(),
    }
    with atomic_path(Path(folder) / WEIGHTS) as temporary:
        temporary.write_bytes(content)
    write_text(Path(folder) / CONFIGURATION, json.dumps({"adapter": adapter, "sha256": _digest_of_values(adapter)}, indent=1))


def load_adapter(model: nn.Module, folder: Path | str) -> nn.Module:
    """Put an adapter on its base model, in place, and return the model: it computes what the trained model did, bit for bit.

    A model that is refused is left unchanged. The returned model can be trained, merged and exported like any POET model.

    Args:
        model: the plain base model, with the dtype that it had in training.
        folder: what :func:`save_adapter` wrote.

    Raises:
        AdapterError: the model has POET layers or is not the adapter's base model, or the folder has no adapter, or an adapter
            that was changed since it was saved.
    """
    folder = Path(folder)
    if any(poet_layers(model)):
        raise AdapterError(f"the model has POET layers already: load the adapter {folder} onto the plain base model")
    base, groups, tensors = _read(folder)
    plain = dict(_plain_tensors(model))
    named = {name: tensor for name, tensor in tensors.items() if name in plain}
    _check(model, folder, base, plain, named, itertools.chain(*groups.values()))
    wrapped = {}
    for config, layers in groups.items():
        linears = [model.get_submodule(name) for name in layers]
        try:  # on a list, so that nothing else is wrapped; the permutations that it draws are replaced
            wrapped |= zip(layers, apply_poet(nn.ModuleList(linears), config, exclude=(), generator=torch.Generator()), strict=True)
        except ValueError as error:
            raise AdapterError(f"the adapter {folder} cannot be put on this model: {error}") from None
    for name, tensor in named.items():
        plain[name].data.copy_(tensor)
    for name, layer in wrapped.items():
        _restore(layer, name, tensors)
        model = replace_module(model, model.get_submodule(name), layer)
    allow_saving(model, False)
    return model


def _plain_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of the plain model's state dict, a tied tensor once. Base weights are in the order of ``nn.Linear``."""
    layers, kept = dict(poet_layers(model)), model.state_dict().keys()
    for name, tensor in itertools.chain(model.named_parameters(), model.named_buffers()):
        owner, _, key = name.rpartition(".")
        if owner in layers and key == "base_weight":
            yield _join(owner, "weight"), _base_weight(layers[owner])
        elif name in kept and (owner not in layers or key == "bias"):
            yield name, tensor


def _base_weight(layer: POETLinear) -> Tensor:
    """The base weight (out, in) in the order of ``nn.Linear``: until a merge, the weight that was wrapped, bit for bit."""
    weight = layer.base_weight.detach()
    for dimension, skew, permutation in SIDES:
        if getattr(layer, skew) is not None:
            weight = torch.empty_like(weight).index_copy_(dimension, getattr(layer, permutation), weight)
    return weight


def _factors(layers: Mapping[str, POETLinear]) -> dict[str, Tensor]:
    """Parameters and permutations of each side that is not the identity, by their names in the state dict."""
    found = {}
    for name, layer in layers.items():
        for _, skew, permutation in SIDES:
            if (parameter := getattr(layer, skew)) is not None:
                found[_join(name, skew)] = parameter
                found[_join(name, permutation)] = getattr(layer, permutation).to(torch.int32)
    return found


@torch.no_grad()
def _restore(layer: POETLinear, name: str, tensors: Mapping[str, Tensor]) -> None:
    """Give a freshly wrapped layer the saved parameters and permutations."""
    weight = _base_weight(layer)
    for dimension, skew, permutation in SIDES:
        if (fresh := getattr(layer, skew)) is not None:
            order = tensors[_join(name, permutation)].to(weight.device, torch.int64)
            weight = weight.index_select(dimension, order)
            getattr(layer, permutation).copy_(order)
            # The parameter keeps its own dtype, which may differ from the weight's.
            setattr(layer, skew, nn.Parameter(tensors[_join(name, skew)].to(weight.device), requires_grad=fresh.requires_grad))
    layer.base_weight.copy_(weight)


def _why_other(name: str, layer: POETLinear) -> str:
    if layer.config.init != "keep":
        return f"layer {name or '(root)'} has a weight that POETConfig(init={layer.config.init!r}) drew: an adapter needs init='keep'"
    return (
        f"layer {name or '(root)'} no longer has the weight of the base model, because something was merged (or the dtype is another, or `base` is of "
        "another model): save the whole weight, with export_dense(model).save_pretrained(folder)"
    )


def _read(folder: Path) -> tuple[dict[str, str], dict[POETConfig, list[str]], dict[str, Tensor]]:
    """(digests of the base model, layers by configuration, tensors) of the two files, checked against their digests."""
    try:
        content = (folder / WEIGHTS).read_bytes()
        kept = json.loads((folder / CONFIGURATION).read_text("utf-8"))
        adapter, digests = kept["adapter"], {CONFIGURATION: kept["sha256"], WEIGHTS: kept["adapter"]["weights"]}
    except OSError as error:
        raise AdapterError(f"{folder} is no POET adapter: {Path(error.filename).name} cannot be read ({error.strerror}): give the folder that save_adapter wrote") from None
    except (ValueError, LookupError, TypeError):
        raise AdapterError(f"{folder} is no POET adapter: {CONFIGURATION} is not what save_adapter writes: save or copy the adapter again") from None
    found = {CONFIGURATION: _digest_of_values(adapter), WEIGHTS: hashlib.sha256(content).hexdigest()}
    for name, digest in digests.items():
        if found[name] != digest:
            raise AdapterError(f"{folder / name} was changed since the adapter was saved, or written in part: save or copy the adapter again")
    try:
        if adapter["format"] != FORMAT:
            raise ValueError(f"its format is {adapter['format']}, not {FORMAT}")
        groups = {POETConfig(**group["config"]): group["layers"] for group in adapter["groups"]}
    except (ValueError, TypeError) as error:
        raise AdapterError(f"{folder} was written by another version of poet, with which to load it: {error}") from None
    return adapter["base"], groups, safetensors.torch.load(content)


def _check(
    model: nn.Module, folder: Path, base: Mapping[str, str], plain: Mapping[str, Tensor], named: Mapping[str, Tensor], layers: Iterable[str]
) -> None:
    """Refuse a model that the adapter was not trained on."""
    for name in base:
        if name not in plain:
            raise AdapterError(f"the adapter {folder} is of another model: this one has no {name}")
    for name, tensor in plain.items():
        if name in base:
            if _digest(tensor) != base[name]:
                raise AdapterError(f"{name} is not as the adapter {folder} was trained on: load the same base model, in the same dtype")
        elif name not in named:
            raise AdapterError(f"the adapter {folder} is of another model: that one has no {name}")
        elif (tensor.shape, tensor.dtype) != (named[name].shape, named[name].dtype):
            here, there = (f"{tuple(t.shape)} of {t.dtype}" for t in (tensor, named[name]))
            raise AdapterError(f"{name} is {here} in the model and {there} in the adapter {folder}: build the model as for training")
    for name in layers:
        if type(layer := model.get_submodule(name)) is not nn.Linear:
            raise AdapterError(f"layer {name} is a {type(layer).__name__}, and the adapter {folder} takes nn.Linear")


def _join(owner: str, key: str) -> str:
    return f"{owner}.{key}".lstrip(".")


def _digest(tensor: Tensor) -> str:
    """sha256 over dtype, shape and values."""
    tensor = tensor.detach().cpu().contiguous()
    total = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)}\0".encode())
    total.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return total.hexdigest()


def _digest_of_values(values: object) -> str:
    """sha256 of plain JSON values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
