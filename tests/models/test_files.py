import gzip

import fsspec
import pytest

from daskw2v.errors import InputError, StoreError
from daskw2v.models.stored.files import open_for_reading, open_for_writing


@pytest.fixture(params=["local", "memory"])
def folder(request, tmp_path):
    return f"memory://{tmp_path.name}/files" if request.param == "memory" else str(tmp_path)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_writing__is_read_again(folder, name):
    url = f"{folder}/below/{name}"
    with open_for_writing(url) as f:
        f.write(b"one\ntwo\n")
    with open_for_reading(url) as f:
        assert f.read() == b"one\ntwo\n"


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_writing__keeps_the_old_file_if_it_fails(folder, name):
    url = f"{folder}/{name}"
    with open_for_writing(url) as f:
        f.write(b"old")

    def fill_disk():
        with open_for_writing(url) as f:
            f.write(b"new" * 100_000)
            raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match=f"No space is left where .*{name}"):
        fill_disk()
    with open_for_reading(url) as f:
        assert f.read() == b"old"
    assert [path.rsplit("/", 1)[-1] for path in fsspec.core.url_to_fs(folder)[0].ls(folder, detail=False)] == [name]


@pytest.mark.parametrize("name", ["absent", "absent.gz", ""])
def test_reading__names_a_file_that_cannot_be_opened(tmp_path, name):
    with pytest.raises(InputError, match="cannot be read"), open_for_reading(str(tmp_path / name)):
        pass


@pytest.mark.parametrize("cut", [5, 15, 100])
def test_reading__names_a_damaged_gzip_file(tmp_path, cut):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 4)[:cut])
    with pytest.raises(InputError, match="cannot be read"), open_for_reading(str(path)) as f:
        f.read()
