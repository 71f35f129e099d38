"""What workers with other versions are told; with real ones: test_gossip_errors.py."""

from gossamer.workers import versions


def of(**changes: str) -> dict[str, str]:
    return {**versions.own(), **changes}


def test_one_version_is_no_word() -> None:
    told = {rank: versions.own() for rank in range(3)}
    assert versions.other_gossamers(told) == versions.other_torches(told) == ""


def test_versions_of_a_series_are_alike() -> None:
    assert versions.other_torches({0: of(torch="2.13.0+cpu"), 1: of(torch="2.13.1+cu130")}) == ""
    found = versions.other_torches({0: of(torch="2.13.0"), 1: of(torch="2.1.0")})
    assert "2.13.0 on rank 0 and 2.1.0 on rank 1" in found


def test_the_most_frequent_version_comes_first_and_few_ranks_are_named() -> None:
    told = {0: of(gossamer="0.2.0"), **{rank: of(gossamer="0.3.0") for rank in range(1, 12)}}
    assert (
        "got 0.3.0 on ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 more and 0.2.0 on rank 0; install"
        in versions.other_gossamers(told)
    )


def test_a_worker_that_says_nothing_is_an_older_one() -> None:
    assert "one that does not say its version on rank 1" in versions.other_gossamers(
        {0: versions.own(), 1: {}, 2: versions.own()}
    )
