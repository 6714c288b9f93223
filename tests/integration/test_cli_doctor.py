"""What `crucible doctor` sees of a real database."""

from crucible.cli.checkup import check_database


def test_a_database_that_answers_is_well(postgres_url: str) -> None:
    check = check_database(postgres_url)
    assert (check.state, check.said.split()[0]) == ("ok", "PostgreSQL")


def test_a_database_that_does_not_answer_is_said_without_its_password() -> None:
    check = check_database("postgresql://ada:s3cret@127.0.0.1:1/crucible")
    assert check.state == "bad"
    assert "127.0.0.1" in check.said
    assert "s3cret" not in str(check)
    assert "CRUCIBLE_DATABASE" in check.fix


def test_a_file_needs_no_check() -> None:
    assert check_database("sqlite:///x.db").state == "ok"
