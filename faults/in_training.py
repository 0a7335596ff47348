"""Faults in training: schedule, loss, evaluation, probes, checkpoints, and the methods that POET is compared with."""

from faults.fault import ONE, POET, Fault

CONFORMANCE = "tests/methods/test_conformance.py"

FAULTS = (
    Fault(
        name="cosine-a-step-early", file="poet/training/schedule.py",
        what="The learning rate runs a step ahead: the first step is below the peak, the last one at the floor.",
        old="progress = (step - warmup_steps)",
        new="progress = (step + 1 - warmup_steps)",
        caught_by=("tests/training/test_schedule.py::test_first_step_is_the_peak_and_the_end_is_the_floor",),
        rows=(*POET, "adamw"),
    ),
    Fault(
        name="no-clipping", file="poet/training/run.py",
        what="Gradients are measured and not clipped.",
        old="nn.utils.clip_grad_norm_(self.parameters, threshold)",
        new="nn.utils.clip_grad_norm_(self.parameters, math.inf)",
        caught_by=("tests/launch/test_loop.py::test_clipping_is_applied",), rows=(*POET, "adamw"),
    ),
    Fault(
        name="padding-in-the-loss", file="poet/training/run.py",
        what="The training loss is divided by all tokens, padding included: gradients shrink with the padding.",
        old="predicted = int((labels[:, 1:] != IGNORED_LABEL).sum())",
        new="predicted = labels[:, 1:].numel()",
        caught_by=("tests/launch/test_loop.py::test_the_loss_is_the_mean_over_real_tokens",), rows=ONE,
    ),
    Fault(
        name="one-batch-too-many", file="poet/training/evaluator.py",
        what="The evaluator divides by one batch too many: perplexity flatters, the more the larger the batch.",
        old="mean = total / predicted",
        new="mean = total / (predicted + tokens)",
        caught_by=("tests/training/test_evaluator.py::test_uniform_logits_give_the_vocabulary_size",),
        rows=(*POET, "adamw"),
    ),
    Fault(
        name="probe-after-the-merge", file="poet/training/run.py",
        what="R and P are probed after the merge: at every merge the figures show the identity.",
        old="self.probes.take(self.step + 1, merged=False)\n        merged = self.method.after_step(self.step)",
        new="merged = self.method.after_step(self.step)\n        self.probes.take(self.step + 1, merged=False)",
        caught_by=(
            "tests/training/test_probes.py::test_rotations_start_at_the_identity_and_are_measured_before_the_merge",
        ),
        rows=ONE,
    ),
    Fault(
        name="resumed-without-moments", file="poet/training/run.py",
        what="A run that goes on from a checkpoint starts Adam anew: a stopped run ends elsewhere than an unbroken one.",
        old="optimizer.load_state_dict(saved)",
        new="pass",
        caught_by=("tests/launch/test_resume.py::test_a_stopped_run_ends_with_the_same_bits",), rows=ONE,
    ),
    Fault(
        name="head-counted", file="poet/methods/contract.py",
        what="Embeddings, head and norms are counted as trainable parameters: Table 2's counts are of another question.",
        old="if p.requires_grad and is_counted(name))",
        new="if p.requires_grad)",
        caught_by=(f"{CONFORMANCE}::test_trainable_count_is_table_1_and_the_meta_model_s",), rows=ONE,
    ),
    Fault(
        name="projection-never-renewed", file="poet/methods/galore.py",
        what="GaLore keeps its first subspace for good: the baseline is worse than its authors' and POET looks better.",
        old='if state["step"] % group["refresh_every"] == 0:',
        new='if state["step"] == 0:',
        caught_by=("tests/methods/test_galore.py::test_refresh_interval",), rows=("galore",),
    ),
    Fault(
        name="one-start-for-all-seeds", file="poet/training/run.py",
        what="Every seed starts POET from the same weights and coordinates: the spread over seeds is too small.",
        old='derive("method", spec.seed)',
        new='derive("method", 0)',
        caught_by=("tests/launch/test_loop.py::test_another_seed_is_another_poet",),
    ),
    Fault(
        name="one-run-of-merges", file="poet/methods/poet.py",
        what="Every seed draws the same coordinates at its merges: the spread over seeds is too small.",
        old="optimizer, seed=self._seed)",
        new="optimizer)",
        caught_by=("tests/launch/test_loop.py::test_another_seed_is_another_poet",),
    ),
    Fault(
        name="one-dropout-for-all-steps", file="poet/training/run.py",
        what="LoRA drops the same entries at every step: they are not trained at all.",
        old='derive("step", spec.seed, self.step)',
        new='derive("step", spec.seed)',
        caught_by=("tests/launch/test_loop.py::test_every_step_has_a_dropout_of_its_own",), rows=("lora-r64",),
    ),
    Fault(
        name="another-beta", file="poet/methods/contract.py",
        what="The second moment of Adam forgets sooner than the authors' does, for some methods and not for others.",
        old="betas=(0.9, 0.999), eps=1e-6",
        new="betas=(0.9, 0.95), eps=1e-6",
        caught_by=(f"{CONFORMANCE}::test_methods_differ_in_no_constant_that_they_share",), rows=(*POET, "adamw"),
    ),
    Fault(
        name="no-decay-beside-poet", file="poet/methods/poet.py",
        what="Embeddings, head and norms decay under AdamW and not under POET: it is credited with the difference.",
        old="weight_decay=self.weight_decay\n        )",
        new="weight_decay=0.0\n        )",
        caught_by=(f"{CONFORMANCE}::test_methods_differ_in_no_constant_that_they_share",),
    ),
    Fault(
        name="floor-ignored", file="poet/training/run.py",
        what="The floor of the learning rate is 0.01 of its peak whatever a scale says.",
        old="minimum_ratio=spec.minimum_lr_ratio, ",
        new="",
        caught_by=("tests/launch/test_loop.py::test_warm_up_and_floor_are_the_spec_s",), rows=ONE,
    ),
    Fault(
        name="evaluated-in-fp32", file="poet/training/run.py",
        what="A run in bf16 is evaluated in fp32: its perplexity is that of another model than was trained.",
        old="rows, size, self.autocast, ",
        new="rows, size, contextlib.nullcontext, ",
        caught_by=("tests/launch/test_loop.py::test_an_evaluation_has_the_precision_of_training",), rows=ONE,
    ),
)
