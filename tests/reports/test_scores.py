from daskw2v.reports.page import CategoryScore, interval_notes, list_ratings


def test_list_ratings__attaches_parts_and_coverage(evaluation):
    rows = {(row.score.name, row.score.measure): row for row in list_ratings(evaluation)}
    assert list(rows) == [
        ("ws353", "spearman"),
        ("tiny", "spearman"),
        ("google", "3cosadd"),
        ("google", "lrcos"),
        ("battig", "purity"),
        ("mr", "logistic"),
        ("wikisem", "accuracy"),
    ]
    assert rows["google", "3cosadd"].groups == (CategoryScore("semantic", 0.25, 300),)
    assert rows["google", "3cosadd"].categories == (
        CategoryScore("capitals <b>", 0.25, 300),
        CategoryScore("plurals", 0.25, 100),
    )
    assert rows["google", "lrcos"].categories == ()
    assert rows["wikisem", "accuracy"].categories == (
        CategoryScore("cats", 1.0, None),
        CategoryScore("dogs", None, None),
    )
    assert rows["ws353", "spearman"].coverage == 340 / 353
    assert rows["mr", "logistic"].coverage == 0.9375


def test_interval_notes__tell_of_kinds_with_intervals_only(evaluation):
    notes = interval_notes(evaluation)
    assert [note.split(":")[0] for note in notes] == ["similarity", "categorization", "classification"]
