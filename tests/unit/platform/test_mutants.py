"""The list of `make mutants` fits the code. Without this test, a mistake would be seen only when the list is
run."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, ROOT, DoesNotFit, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_the_code_with_one_mistake(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    mutated = mutant.of(source)
    assert mutated != source
    compile(mutated, mutant.file, "exec")
    assert all((ROOT / test.partition("::")[0]).is_file() for test in mutant.tests)


@pytest.mark.parametrize("source", ["", "old old"])
def test_a_text_that_is_not_there_once_is_refused(source: str) -> None:
    with pytest.raises(DoesNotFit, match="not once"):
        Mutant("m", "", "file", "old", "new", ()).of(source)
