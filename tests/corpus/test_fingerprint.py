import functools

import pytest

from daskw2v.corpus.tokenizers import fingerprint


def compiled(text, name="f"):
    names = {"functools": functools}
    exec(text, names)
    return names[name]


F = "def f(lines, by=','):\n    return [line.split(by) for line in lines]"


def test_fingerprint__is_the_same_wherever_the_function_stands():
    assert fingerprint(compiled(F)) == fingerprint(compiled("\n\n" + F))
    assert len(fingerprint(compiled(F))) == 20


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("by=','", "by=';'"),  # a default
        ("lines, by", "lines, *, by"),
        ("split", "rsplit"),  # a name
        ("split(by)", "split('-')"),  # a constant
        ("line.split(by) for", "(lambda: line.split(by) or 1)() for"),
        ("for line in lines", "for line in lines if line"),
    ],
)
def test_fingerprint__changes_with_the_code(old, new):
    assert fingerprint(compiled(F)) != fingerprint(compiled(F.replace(old, new)))


def test_fingerprint__sees_constants_of_functions_inside():
    one, other = (
        f"def f(lines):\n    def g(line):\n        return line + '{c}'\n    return [*map(g, lines)]" for c in "ab"
    )
    assert fingerprint(compiled(one)) != fingerprint(compiled(other))


def test_fingerprint__sees_what_is_tried():
    one = "def f(x):\n    try:\n        a()\n    except E:\n        pass\n    b()"
    other = "def f(x):\n    try:\n        a()\n        b()\n    except E:\n        pass"
    assert fingerprint(compiled(one)) != fingerprint(compiled(other))


def test_fingerprint__does_not_depend_on_the_order_of_sets():
    f = compiled(F)
    codes = [f.__code__.replace(co_consts=(None, frozenset(order))) for order in ([0, 8], [8, 0])]
    one, other = (type(f)(code, {}) for code in codes)
    assert repr(one.__code__.co_consts) != repr(other.__code__.co_consts)
    assert fingerprint(one) == fingerprint(other)


def test_fingerprint__sees_what_a_decorator_wraps():
    cached = "@functools.lru_cache\n" + F
    assert fingerprint(compiled(cached)) != fingerprint(compiled(cached.replace("','", "';'")))


def test_fingerprint__sees_how_an_object_is_called():
    objects = (compiled(f"class C:\n    def __call__(self, x):\n        return {n}\nf = C()") for n in (1, 2))
    assert len(set(map(fingerprint, objects))) == 2


def test_fingerprint__passes_over_objects_without_a_stable_text():
    text = "def f(x, by=object()):\n    return x"
    assert fingerprint(compiled(text)) == fingerprint(compiled(text))
    assert fingerprint(len) == fingerprint(print)  # not Python: their names must tell them apart
