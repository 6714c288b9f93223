"""Every column that names a person and every row that hangs on a job has its word in `personal` or goes with the job:
whoever adds a table says what becomes of it."""

from crucible.store import schema
from crucible.store.columns import metadata
from crucible.store.personal import HIDDEN, NAMES, OF_PEOPLE, STAYS, TOLD_OF_JOBS
from crucible.store.removals import OF_JOBS

assert schema.REVISION  # all tables have joined the metadata


def test_every_column_that_names_a_person_has_its_fate() -> None:
    named = {column for table in metadata.sorted_tables for column in table.c if column.name in NAMES}
    assert {str(column) for column in named} - {str(column) for column in OF_PEOPLE} == set()


def test_every_row_that_hangs_on_a_job_goes_with_it_or_stays_for_a_reason() -> None:
    hanging = {table.name for table in metadata.sorted_tables if "job_id" in table.c}
    going = {table.name for table in OF_JOBS}
    staying = {table.name for table in STAYS}
    apart = {"notices"}  # they have an age of their own
    assert not going & staying
    assert hanging == going | staying | apart


def test_what_is_told_of_a_job_is_found_by_the_job() -> None:
    assert all("job_id" in table.c and set(key) <= set(table.c.keys()) for table, key in TOLD_OF_JOBS.items())


def test_nobody_is_told_the_digest_of_a_token() -> None:
    assert "tokens.digest" in {str(column) for column in HIDDEN}
