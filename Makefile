# The commands; scripts/bootstrap.py does the work and also runs without make.
PYTHON ?= python3

.PHONY: demo test verify interop lint docs clean
demo test verify interop lint docs:
	@$(PYTHON) scripts/bootstrap.py $@

clean:
	rm -rf .venv build dist demo .pytest_cache .mypy_cache .ruff_cache
