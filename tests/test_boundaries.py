"""What may import what, and that no option is dead."""

import ast
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from poet import POETConfig
from poet.methods import METHODS
from poet.primitives import VARIANTS
from poet.training.spec import Architecture, RunSpec
from suite.discovery import locate

FOREIGN = ("snakemake", "transformers", "datasets", "peft", "pydantic")
OWN = ("poet.methods", "poet.training", "poet.data", "poet.launch", "poet.finetuning", "poet.system")
#: Top-level packages. What stands above the suite starts or measures things: nothing imports it.
ABOVE = ("workflow", "benchmarks", "faults", "tests", "tools")
CORE = tuple(f"poet.{path.stem}" for path in sorted((Path(__file__).parents[1] / "poet").glob("*.py")) if path.stem != "__init__")
PACKAGES = ("poet", "suite", "analyses", "benchmarks", "faults", "workflow", "tools", "tests")
#: Parts, each with what it may not know: arrows point from analyses to the suite to finetuning to launch to training to methods and
#: data to the core. The suite finds artifacts by where they lie, and imports none of them by name.
FORBIDDEN = {
    "poet/*.py": (*FOREIGN, *OWN, "poet.integrations"),
    "poet/kernels/*.py": (*FOREIGN, *OWN, "poet.integrations", "poet.primitives", *CORE),
    "poet/primitives/*.py": (*FOREIGN, *OWN, "poet.integrations", "poet.transform", "poet.linear", "poet.config"),
    "poet/integrations/*.py": (*OWN, "datasets", "peft", "pydantic"),
    "poet/system/*.py": ("poet.integrations", "poet.methods", "poet.training", "poet.data", "poet.launch", "poet.finetuning"),
    "poet/methods/*.py": ("poet.training", "poet.data", "poet.launch", "poet.finetuning"),
    "poet/data/**/*.py": ("poet.training", "poet.methods", "poet.launch", "poet.finetuning"),
    "poet/training/*.py": ("poet.launch", "poet.finetuning"),
    "poet/launch/*.py": ("poet.finetuning",),
    "poet/finetuning/adapter.py": (*FOREIGN, "poet.methods", "poet.training", "poet.data", "poet.launch", "poet.finetuning", "poet.integrations"),
    "poet/**/*.py": ("suite", "analyses", "snakemake", *ABOVE),
    "suite/**/*.py": ("analyses", "snakemake", *ABOVE),
    "analyses/**/*.py": ("snakemake", *ABOVE),
    "analyses/common/*.py": ("analyses.tables", "analyses.figures", "analyses.theory", "analyses.errata", "analyses.controls", "analyses.report"),
    "benchmarks/*.py": ("workflow", "faults", "tests", "tools"),
    "faults/*.py": ("workflow", "tests", "tools"),
}


def imports(path):
    """Every module that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def breaches(files, forbidden):
    return [
        f"{path.name} imports {module}"
        for path in files
        for module in imports(path)
        if any(module == name or module.startswith(name + ".") for name in forbidden)
    ]


def test_importing_poet_loads_none_of_the_heavy_packages(repository):
    code = f"import poet, sys; print([m for m in {(*FOREIGN, *OWN, 'triton')!r} if m in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_finding_the_artifacts_loads_nothing_that_only_building_them_needs(repository):
    """Every call of Snakemake does it, and most build nothing: transformers would take as long as all the rest, the others a second."""
    heavy = ("transformers", "scipy.stats", "matplotlib.pyplot", "seaborn")
    code = f"import sys; import suite.begin; from suite.discovery import discover; discover(); print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("part", FORBIDDEN)
def test_dependencies_point_one_way(repository, part):
    files = list(repository.glob(part))
    assert files
    assert not breaches(files, FORBIDDEN[part])


def circles(root, folders):
    """Modules of some folders that import themselves by way of others, as sorted groups."""
    names = {}
    for path in (path for folder in folders for path in (root / folder).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return _circles({name: {module for module in imports(path) if module in names and module != name} for name, path in names.items()})


def folder_circles(root, folders):
    """Folders that import each other, as sorted groups. A folder and one inside it count as one, since what is shared lies in the outer one."""
    known = {}
    for path in (path for folder in folders for path in (root / folder).rglob("*.py")):
        own = path.parent.relative_to(root).as_posix()
        for module in imports(path):
            parts = module.split(".")
            there = "/".join(parts if (root / Path(*parts)).is_dir() else parts[:-1])
            if parts[0] in folders and (root / there).is_dir() and not f"{own}/".startswith(f"{there}/") and not f"{there}/".startswith(f"{own}/"):
                known.setdefault(own, set()).add(there)
                known.setdefault(there, set())
    return _circles(known)


def _circles(known):
    """The members of circles in a graph, as sorted groups; ``known`` has what each node points to."""
    reached = {}
    for name in known:
        found, waiting = set(), [name]
        while waiting:
            new = known[waiting.pop()] - found
            found |= new
            waiting += new
        reached[name] = found
    return [sorted(other for other in reached if name in reached[other] and other in reached[name]) for name in reached if name in reached[name]]


def test_nothing_in_the_project_imports_itself(repository):
    assert all((repository / folder).is_dir() for folder in PACKAGES)
    assert not circles(repository, PACKAGES)
    assert not folder_circles(repository, PACKAGES)


def test_a_circle_is_found(tmp_path):
    """Also one from a folder to another, and one of an import in a function."""
    (tmp_path / "low").mkdir()
    (tmp_path / "high").mkdir()
    (tmp_path / "low" / "a.py").write_text("from high import b")
    (tmp_path / "high" / "b.py").write_text("def late():\n    from low.a import x")
    assert circles(tmp_path, ("low", "high"))[0] == ["high.b", "low.a"]
    assert not circles(tmp_path, ("low",))
    assert folder_circles(tmp_path, ("low", "high"))[0] == ["high", "low"]
    (tmp_path / "low" / "a.py").write_text("from low.deep import c")
    (tmp_path / "low" / "deep").mkdir()
    (tmp_path / "low" / "deep" / "c.py").write_text("from low import d")
    assert not folder_circles(tmp_path, ("low", "high"))


def reads(paths):
    """Names of attributes that are read in the files, outside of validation."""
    found = set()
    for path in paths:
        tree = ast.parse(Path(path).read_text())
        skipped = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name == "__post_init__"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in skipped:
                found.add(node.attr)
    return found


def test_every_field_of_the_poet_config_is_read(repository):
    files = [*(repository / "poet").glob("*.py")]
    options = {name for variant in VARIANTS.values() for name in variant.options}  # keyword arguments of their functions
    assert {f.name for f in fields(POETConfig)} <= reads(files) | options


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_is_read_by_it(name):
    method = METHODS[name]
    modules = {cls.__module__ for cls in method.__mro__ if cls.__module__.startswith("poet.methods")}
    own = {f.name for f in fields(method.Parameters)}
    if issubclass(method.Parameters, POETConfig):
        own -= {f.name for f in fields(POETConfig)}
    assert own <= reads(sys.modules[module].__file__ for module in modules)


def test_every_field_of_a_run_spec_is_read(repository):
    folders = ("poet", "suite", "analyses", "workflow")
    files = [p for f in folders for p in (repository / f).rglob("*") if p.suffix in (".py", ".smk")]
    text = "\n".join(p.read_text() for p in files if p.name != "spec.py")
    spec_file = (repository / "poet/training/spec.py").read_text()
    for field in fields(RunSpec):
        used = re.search(rf"\bspec\.{field.name}\b", text) or re.search(rf"\bself\.{field.name}\b", spec_file)
        assert used, f"RunSpec.{field.name} is never read"
    for field in fields(Architecture):
        assert re.search(rf"\barchitecture\.{field.name}\b", text), f"Architecture.{field.name} is never read"


def test_no_code_imports_from_an_artifact_s_own_file(repository):
    """An artifact is remade when shared code changes, and not when another artifact's file does."""
    owners = {".".join(path.relative_to(repository).with_suffix("").parts) for path in locate(repository).values()}
    assert len(owners) > 40
    assert not breaches((repository / "analyses").rglob("*.py"), owners)


def test_few_files_lie_directly_in_analyses(repository):
    assert len([path for path in (repository / "analyses").iterdir() if path.is_file()]) <= 5
