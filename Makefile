# The commands; scripts/bootstrap.py does the work and also runs without make.
PYTHON ?= python3

.PHONY: light demo test verify interop lint docs clean
light demo test verify interop lint docs:
	@$(PYTHON) scripts/bootstrap.py $@

clean:
	rm -rf .venv build dist demo .pytest_cache .mypy_cache .ruff_cache
