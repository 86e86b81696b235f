"""The log: written once, chained, one writer at a time."""

import errno
import json
import multiprocessing
import os
import subprocess

import pytest
from registration_cases import make_key, new_log

from forecast.errors import CheckFailed, ForecastError
from forecast.files import sha256_hex
from prereg import publish as publishing
from prereg.log import Log, find_entry, leftovers
from prereg.publish import lock, publish


def test_entries_are_files_numbered_from_one_and_chained(tmp_path):
    folder, key = new_log(tmp_path)
    second = Log(folder).append("launch", {"x": 1}, key=key)
    third = Log(folder).append("launch", {"x": 2}, key=key)
    first = folder / "0001-key.json"

    assert [entry.seq for entry in Log(folder).entries()] == [1, 2, 3]
    assert third.path.name == "0003-launch.json"
    assert sha256_hex(first.read_bytes()) == second.entry.previous
    assert sha256_hex((folder / "0001-key.json.sig").read_bytes()) == second.entry.previous_signature
    assert second.digest == third.entry.previous
    assert second.digest == sha256_hex(second.path.read_bytes())


def test_git_leaves_the_bytes_alone(tmp_path):
    folder, _ = new_log(tmp_path)

    assert (folder / ".gitattributes").read_text() == "* -text\n"
    git = ["git", "-C", str(folder), "-c", "core.autocrlf=true"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True, capture_output=True)
    blob = subprocess.run([*git, "show", ":0001-key.json"], check=True, capture_output=True).stdout
    listed = subprocess.run([*git, "ls-files"], check=True, capture_output=True, text=True).stdout.split()
    assert (folder / "0001-key.json").read_bytes() == blob
    assert listed == [".gitattributes", ".gitignore", "0001-key.json", "0001-key.json.sig"]


def test_a_second_log_in_one_folder_is_refused(tmp_path):
    folder, key = new_log(tmp_path)

    with pytest.raises(ForecastError, match="holds a log already"):
        Log.create(folder, author="Eve", key=key)


def test_a_folder_without_a_log_is_not_appended_to(tmp_path):
    key = make_key(tmp_path / "key")

    with pytest.raises(ForecastError, match="holds no log"):
        Log(tmp_path / "none").append("launch", {}, key=key)


def test_another_key_is_refused_until_the_log_hands_over(tmp_path):
    folder, key = new_log(tmp_path)
    other = make_key(tmp_path / "other")

    with pytest.raises(ForecastError, match="rotate"):
        Log(folder).append("launch", {}, key=other)
    Log(folder).rotate(key=key, new_key=other)
    Log(folder).append("launch", {}, key=other)
    with pytest.raises(ForecastError, match="rotate"):
        Log(folder).append("launch", {}, key=key)


def test_an_entry_is_never_written_twice(tmp_path):
    path = tmp_path / "0001-key.json"
    publish(path, b"first")

    with pytest.raises(ForecastError, match="never written twice"):
        publish(path, b"second")
    assert path.read_bytes() == b"first"


def test_without_unnamed_files_an_entry_is_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE")
    folder, key = new_log(tmp_path)
    Log(folder).append("launch", {}, key=key)

    assert len(list(Log(folder).entries())) == 2
    assert leftovers(folder) == []
    with pytest.raises(ForecastError, match="never written twice"):
        publish(folder / "0002-launch.json", b"")


def test_without_hard_links_an_entry_is_written_all_the_same(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.delattr(os, "O_TMPFILE")
    monkeypatch.setattr(os, "link", refuse)
    folder, _ = new_log(tmp_path)

    assert len(list(Log(folder).entries())) == 1
    with pytest.raises(ForecastError, match="cannot be written"):
        publish(folder / "0001-key.json", b"")
    assert leftovers(folder) == []


def test_a_second_writer_may_be_refused_instead_of_waiting(tmp_path):
    with (
        lock(tmp_path),
        pytest.raises(ForecastError, match="another process is writing"),
        lock(tmp_path, wait=False),
    ):
        pass


def _append_many(folder, key, count):
    for _ in range(count):
        Log(folder).append("launch", {"pid": os.getpid()}, key=key)


def test_two_processes_never_give_one_number_twice(tmp_path):
    folder, key = new_log(tmp_path)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(folder, key, 4)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    entries = list(Log(folder).entries())
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert list(range(1, 14)) == [entry.seq for entry in entries]
    assert len({entry.body.get("pid") for entry in entries[1:]}) == 3


def test_what_a_killed_writer_left_is_removed_and_named(tmp_path):
    folder, key = new_log(tmp_path)
    (folder / "0002-register.json.sig").write_text("half")
    (folder / ".0002-register.json.tmp").write_text("half")
    log = Log(folder)
    log.append("launch", {}, key=key)

    assert log.removed == [".0002-register.json.tmp", "0002-register.json.sig"]
    assert len(list(log.entries())) == 2
    assert leftovers(folder) == []


def test_a_signature_whose_entry_was_dropped_from_the_middle_is_evidence_and_stays(tmp_path):
    folder, key = new_log(tmp_path)
    for _ in range(3):
        Log(folder).append("launch", {}, key=key)
    (folder / "0002-launch.json").unlink()

    with pytest.raises(CheckFailed, match="run verify"):
        Log(folder).append("launch", {}, key=key)
    assert (folder / "0002-launch.json.sig").exists()


@pytest.mark.parametrize("name", ["with space", 'it\'s "quoted"', "new\nline", "-dash", "ünï 🦊"])
def test_odd_paths_hold_a_log(tmp_path, name):
    base = tmp_path / name
    base.mkdir()
    folder, key = new_log(base)
    Log(folder).append("launch", {}, key=key)

    assert len(list(Log(folder).entries())) == 2


def test_a_disk_that_is_full_or_a_file_in_the_way_is_an_error_with_its_name(tmp_path, monkeypatch):
    folder, key = new_log(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ForecastError, match="no log can be started"):
        Log.create(tmp_path / "file", author="A", key=key)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publishing, "_write_all", full)
    with pytest.raises(ForecastError, match=r"0002-launch\.json\.sig cannot be written: No space left"):
        Log(folder).append("launch", {}, key=key)
    monkeypatch.undo()
    assert [1] == [entry.seq for entry in Log(folder).entries()]
    assert leftovers(folder) == []


def test_an_entry_is_found_by_file_number_and_digest(tmp_path):
    folder, key = new_log(tmp_path)
    written = Log(folder).append("launch", {}, key=key)

    assert written == find_entry(written.path)
    for reference in ("2", "0002-launch.json", written.digest, written.digest[:8]):
        assert written == find_entry(reference, log=folder)
    for reference in ("3", "ffffffff", written.digest[:7], "nonsense"):
        with pytest.raises(ForecastError):
            find_entry(reference, log=folder)


def test_an_entry_that_was_edited_is_not_found(tmp_path):
    folder, key = new_log(tmp_path)
    path = Log(folder).append("launch", {"x": 1}, key=key).path
    path.write_text(json.dumps(json.loads(path.read_text())))

    with pytest.raises(CheckFailed, match="does not match the bytes"):
        find_entry(path)


def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path, monkeypatch):
    folder, key = new_log(tmp_path)

    def refuse(*arguments, **options):
        raise OSError(30, "Read-only file system")

    assert len(list(Log(folder).entries())) == 1
    monkeypatch.setattr(publishing.os, "open", refuse)
    with pytest.raises(ForecastError, match="Read-only file system"):
        Log(folder).append("launch", {}, key=key)
