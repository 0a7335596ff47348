# Two commands for a fresh machine: `make results/table2.csv` and `make test`. Python 3.11 or newer with venv is all
# that has to be there.

# Rules for C and the like would take a target that is none of these, where a file of its name lies beside it.
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
SCALE ?= mini
SEEDS ?= [0]
CORES ?= all

# A misspelt option would do nothing, and a run of days would have other seeds or another scale than it was asked for.
OPTIONS := PYTHON SCALE SEEDS CORES RECORDED RESUME MODEL ROWS LENGTHS ARTIFACT TARGET A B K DROP NUMBERS
UNKNOWN := $(filter-out $(OPTIONS),$(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name))))
$(if $(UNKNOWN),$(error error: there is no option $(UNKNOWN): options are $(OPTIONS), in capitals))

# Other targets would train what the recorded runs have.
ELSEWHERE := $(if $(filter-out 0,$(RECORDED)),$(filter-out report docs record,$(MAKECMDGOALS)))
$(if $(ELSEWHERE),$(error error: RECORDED=1 does nothing for $(ELSEWHERE): give it to report, docs or record, or RESUME=recorded to what trains))

TARGETS := help all report check verify unlock tune plan status why compare test test-slurm faults bench bench-gpu record docs schema lock clean
.PHONY: $(TARGETS)
.DEFAULT_GOAL := help

help:
	@echo "make results/table2.csv [SCALE=mini|smoke|night|gpu|paper] [SEEDS=[0,1]] [CORES=all]"
	@echo "make all     every table and figure; the same options"
	@echo "             one of them: results/table2.csv, results/figures/figure10.pdf, ...; docs/artifacts.md lists all, by the paper's labels"
	@echo "make report  all of it on one page; RECORDED=1 builds everything from the recorded runs of SCALE, and trains nothing"
	@echo "RESUME=recorded  beside any of these: a recorded run of today's spec, code and data is restored instead of trained"
	@echo "make check   compare results/ with the recorded numbers of SCALE, and fail if any left its tolerance; the same options"
	@echo "make tune    train trials of learning rates by config/tuning.yaml until every search of SCALE has ended [MODEL=60m] [ROWS=adamw,galore] [LENGTHS=1/100,1/30]"
	@echo "make verify  every record, history, probe, archive, table and figure against its digest, and what was made from runs that are gone"
	@echo "make unlock  remove the lock that a pipeline killed on another machine left (the next call removes this machine's own)"
	@echo "make plan    what SCALE would cost: runs, tokens, FLOPs, GPU-hours, memory, disk, and what to run first [ARTIFACT=table2]"
	@echo "make status  how far every run of SCALE is: done, running, stopped, failed"
	@echo "make why TARGET=results/table2.csv  what would be made again, and which file, spec or parameter is the reason; the same options"
	@echo "make compare A=results/mini B=...  two results folders or tables side by side, by the tolerances of the check"
	@echo "make test    every test that needs neither a GPU nor Slurm"
	@echo "make test-slurm  start a Slurm of this machine's own, and send the pipeline through it (needs root; Debian's packages)"
	@echo "make faults  plant small faults in a copy of the code, one at a time, and show what catches each [NUMBERS=1: train with those that training can show, too]"
	@echo "make bench   time layers, kernels and training steps on the CPU into results/bench.csv [K=a pytest -k expression]"
	@echo "make bench-gpu  the same on a GPU into results/bench-gpu.csv, with PYTHON's own torch, Triton, transformers, numpy and pydantic"
	@echo "make record  keep results/ as the recorded numbers of SCALE, and bring README.md and docs/ up to date [DROP=1: lose runs that nothing asks for any more; RECORDED=1: renew what is recorded, from what make report RECORDED=1 built]"
	@echo "make schema  write workflow/schemas/*.json anew, by which an editor completes and checks config/"
	@echo "make docs    build the documentation into results/site, and fail on a dead link; RECORDED=1 puts the report from recorded runs into it"
	@echo "make lock    write requirements.lock, environment.yml and docs/requirements.txt anew from pyproject.toml (constraints-cuda.txt is kept by hand)"
	@echo "make clean   remove the virtual environment"

# What Snakemake starts is the environment's own, too.
snakemake = PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/snakemake --cores $(CORES) $(1) --config scale=$(SCALE) 'seeds=$(SEEDS)'$(if $(RESUME), resume=$(RESUME))

# The stamp is written last: an installation that was cut short is done again.
.venv/installed: requirements.lock constraints-cuda.txt
	@command -v $(PYTHON) >/dev/null || { echo "error: there is no $(PYTHON): install Python 3.11 or newer, or call make with PYTHON=<where it is>" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "error: Python 3.11 or newer is needed, $(PYTHON) is older: call make with PYTHON=<a newer one>")'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "error: $(PYTHON) has no venv: install it (Debian: python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --requirement requirements.lock --constraint constraints-cuda.txt
	@touch $@

all: .venv/installed
	$(call snakemake,all)

# Seeds that nobody asked for are those that are recorded.
report: .venv/installed
ifeq ($(filter-out 0,$(RECORDED)),)
	$(call snakemake,results/report.html)
else
	.venv/bin/python -m suite.recorded build --scale $(SCALE) $(if $(filter file,$(origin SEEDS)),,--seeds '$(SEEDS)')
endif

check: .venv/installed
	$(call snakemake,check)

verify: .venv/installed
	@.venv/bin/python -m suite verify

unlock: .venv/installed
	@$(call snakemake,--unlock)

# Snakemake knows what is up to date; make only hands the target on.
results/%: .venv/installed FORCE
	$(call snakemake,$@)

tune: .venv/installed
	.venv/bin/python -m suite.tuning --scale $(SCALE) --cores $(CORES) $(if $(MODEL),--model $(MODEL)) $(if $(ROWS),--rows $(ROWS)) $(if $(LENGTHS),--lengths $(LENGTHS)) $(if $(RESUME),--resume $(RESUME))

plan: .venv/installed
	@echo "reading scale $(SCALE) and its artifacts" >&2
	.venv/bin/python -m suite plan --scale $(SCALE) --seeds '$(SEEDS)' $(if $(ARTIFACT),--artifact $(ARTIFACT))

status: .venv/installed
	@echo "reading scale $(SCALE) and its artifacts" >&2
	.venv/bin/python -m suite status --scale $(SCALE) --seeds '$(SEEDS)'

why: .venv/installed
	.venv/bin/python -m suite why $(or $(TARGET),all) --scale $(SCALE) --seeds '$(SEEDS)'

# As the check: 1 if a number left its tolerance, 2 if A and B cannot be compared. make itself then ends with 2.
compare: .venv/installed
	@$(if $(and $(A),$(B)),:,echo "error: compare needs two results folders or two tables: call make compare A=analyses/recorded/mini B=results/mini" >&2; exit 2)
	.venv/bin/python -m suite compare $(A) $(B)

test: .venv/installed
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q

# The reasons of skips are shown: without root or Slurm's packages nothing is tested.
test-slurm: .venv/installed
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m pytest tests/slurm -q -rs

faults: .venv/installed
	.venv/bin/python -m faults.plant $(if $(NUMBERS),--numbers --scale $(SCALE))

# Every line of the table is of one run; K chooses which lines there are.
bench: .venv/installed
	.venv/bin/python -m pytest tests/benchmarks --benchmark-only --benchmark-columns=median,iqr,rounds -q $(if $(K),-k '$(K)')

# Not in .venv, whose torch may be one for CPUs: a machine with a GPU brings its own.
bench-gpu:
	$(PYTHON) -m benchmarks.gpu

record: .venv/installed
	.venv/bin/python tools/record.py --scale $(SCALE) --seeds '$(SEEDS)' $(if $(filter-out 0,$(DROP)),--drop) $(if $(filter-out 0,$(RECORDED)),--recorded)

schema: .venv/installed
	.venv/bin/python -m suite.settings

# MkDocs adds to what is installed and changes none of it. With --quiet it would see no warnings, and --strict no dead link.
.venv/docs: .venv/installed docs/requirements.txt
	.venv/bin/python -m pip install --quiet --requirement docs/requirements.txt --constraint requirements.lock
	@touch $@

# Exit code 1 of the build: the report is there, and says what it lacks.
docs: .venv/docs
ifneq ($(filter-out 0,$(RECORDED)),)
	.venv/bin/python -m suite.recorded build --scale $(SCALE) || test $$? -eq 1
endif
	.venv/bin/python -m mkdocs build --strict
	@echo "results/site/index.html"

lock: .venv/installed
	.venv/bin/python tools/lock.py

clean:
	rm -rf .venv

# What no rule makes: the nearest target, in a sentence. Of the folders here make would say that they are up to date. A rule cannot name some of them.
PLAIN := $(foreach name,$(wildcard */),$(if $(findstring :,$(name))$(findstring %,$(name)),,$(name)))
FOLDERS := $(filter-out $(TARGETS),$(PLAIN) $(PLAIN:/=))
.DEFAULT $(FOLDERS): FORCE
	@test -e .venv/installed || { echo "error: there is no target $@: make help says which there are" >&2; exit 2; }
	@.venv/bin/python -m suite nearest '$@' --scale $(SCALE) --targets $(TARGETS)

FORCE:
