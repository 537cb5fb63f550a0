"""The authority's folder, what it issues, and the verbs."""

import json
import os
import ssl
import stat
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from meshes import Authority

from banditmesh.cli import main
from banditmesh.errors import FileError, InputError, RefusedError
from banditmesh.live.links import notices
from banditmesh.live.transport import identity, keys
from banditmesh.live.transport.identity import KeyFiles, file_name, peer_identity


@pytest.fixture
def authority(tmp_path):
    keys.init(tmp_path / "authority", "shop")
    return tmp_path / "authority"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def handshake(one, other):
    """Shake hands in memory; who the server and the client say the other one is."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = one.client.wrap_bio(back, there)
    server = other.server.wrap_bio(there, back, server_side=True)
    for _ in range(3):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return peer_identity(server), peer_identity(client)


def test_two_commands_make_a_mesh(authority, tmp_path):
    one, other = (identity.contexts(keys.issue(authority, name, tmp_path / "keys")) for name in ("a", "b/ü"))
    assert handshake(one, other) == (one.own, other.own)
    assert (other.own.mesh, other.own.node) == ("shop", "b/ü")
    names = {"a.pem", "a.key", "b%2Fü.pem", "b%2Fü.key", "authorities.crt"}
    assert {path.name for path in (tmp_path / "keys").iterdir()} == names


def test_keys_are_for_their_owner_alone_from_the_first_byte_on(authority, tmp_path, monkeypatch):
    # A mode that is set later would leave a moment in which others can read.
    for name in ("chmod", "fchmod"):
        monkeypatch.setattr(os, name, lambda *_, **__: None)
    before = os.umask(0)
    try:
        files = keys.issue(authority, "a", tmp_path / "keys")
        keys.init(tmp_path / "other", "shop")
    finally:
        os.umask(before)
    assert mode(files.key) == mode(tmp_path / "other" / "authority.key") == 0o600
    assert mode(tmp_path / "keys") == mode(tmp_path / "other") == 0o700
    assert mode(files.certificate) == 0o666


def test_a_key_that_all_users_can_read_is_warned_of(authority, tmp_path, caplog):
    files = keys.issue(authority, "a", tmp_path / "keys")
    identity.contexts(files)
    files.key.chmod(0o640)
    identity.contexts(files)
    assert not caplog.messages
    files.key.chmod(0o644)
    (authority / "authority.key").chmod(0o604)
    identity.contexts(files)
    keys.expel(authority, "b")
    assert [line.split()[0] for line in caplog.messages] == [str(files.key), str(authority / "authority.key")]
    assert caplog.messages[0].endswith(
        f"must be secret, and all users of this machine can read it; run: chmod o= {files.key}"
    )


def test_certificates_hold_as_long_as_asked_and_not_longer_than_the_authority(tmp_path):
    keys.init(tmp_path / "authority", "shop", days=30)
    for name, days, expected in (("a", 7, 7), ("b", 90, 30)):
        own = identity.contexts(keys.issue(tmp_path / "authority", name, tmp_path / "keys", days=days)).own
        assert expected - 1 < (own.not_after - own.not_before) / 86400 <= expected
    for days in (0, -1, 40_000):
        with pytest.raises(InputError, match="days must be an integer of at least 1 and at most 36500"):
            keys.issue(tmp_path / "authority", "c", tmp_path / "keys", days=days)


def test_nothing_is_overwritten_unless_asked(authority, tmp_path):
    keys.issue(authority, "a", tmp_path / "keys")
    before = content(authority), content(tmp_path / "keys")
    with pytest.raises(FileError, match=r"authority\.crt must not exist yet, got a file; --force replaces it"):
        keys.init(authority, "shop")
    with pytest.raises(FileError, match=r"a\.pem must not exist yet"):
        keys.issue(authority, "a", tmp_path / "keys")
    other = Authority(tmp_path / "elsewhere")
    with pytest.raises(FileError, match=r"authorities\.crt must be this authority's, got another one"):
        keys.issue(other.folder / "authority", "b", tmp_path / "keys")
    assert (content(authority), content(tmp_path / "keys")) == before
    keys.issue(authority, "a", tmp_path / "keys", force=True)
    after = content(tmp_path / "keys")
    assert after["authorities.crt"] == before[1]["authorities.crt"]
    assert after["a.key"] != before[1]["a.key"]


def test_renewing_changes_the_certificate_alone(authority, tmp_path):
    files = keys.issue(authority, "a", tmp_path / "keys", days=1)
    before = content(tmp_path / "keys")
    files.key.unlink()  # it need not be where the authority is
    assert keys.renew(authority, "a", tmp_path / "keys") == files
    files.key.write_bytes(before["a.key"])
    after = content(tmp_path / "keys")
    assert after["a.pem"] != before["a.pem"]
    assert after["authorities.crt"] == before["authorities.crt"]
    own = identity.contexts(files).own
    assert own.not_after - own.not_before == 365 * 86400


def test_only_what_the_authority_issued_to_that_node_is_renewed(authority, tmp_path):
    files = keys.issue(authority, "a", tmp_path / "keys")
    stranger = Authority(tmp_path / "elsewhere").issue
    stranger("a")
    foreign = (tmp_path / "elsewhere" / "a" / "a.pem").read_bytes()
    files.certificate.rename(tmp_path / "keys" / "b.pem")
    for name in ("b", "c"):
        with pytest.raises(FileError):
            keys.renew(authority, name, tmp_path / "keys")
    files.certificate.write_bytes(foreign)
    with pytest.raises(FileError, match="must be what this mesh's authority issued to 'a', got another's"):
        keys.renew(authority, "a", tmp_path / "keys")


def test_mesh_moves_from_one_authority_to_another(tmp_path):
    old, new = keys.init(tmp_path / "old", "shop"), keys.init(tmp_path / "new", "shop")
    out = tmp_path / "keys"
    for name in ("a", "b"):
        keys.issue(tmp_path / "old", name, out / name)
    steps = [
        lambda name: keys.renew(tmp_path / "old", name, out / name, trust=[new]),
        lambda name: keys.renew(tmp_path / "new", name, out / name, trust=[old]),
    ]
    for step in steps:
        for name in ("a", "b"):
            step(name)
            one, other = (identity.contexts(KeyFiles.of(out / name, name)) for name in ("a", "b"))
            assert handshake(one, other) == handshake(other, one)[::-1] == (one.own, other.own)
    assert len(one.signers) == 2
    for name in ("a", "b"):
        keys.renew(tmp_path / "new", name, out / name)
        one, other = (identity.contexts(KeyFiles.of(out / name, name)) for name in ("a", "b"))
        assert handshake(one, other) == (one.own, other.own)
    assert len(one.signers) == 1


def test_at_most_two_authorities_of_one_mesh_are_trusted(authority, tmp_path):
    others = [keys.init(tmp_path / f"other-{number}", "shop") for number in range(2)]
    with pytest.raises(InputError, match="at most 2 authorities are trusted at a time, got 3"):
        keys.issue(authority, "a", tmp_path / "keys", trust=others)
    foreign = keys.init(tmp_path / "foreign", "garage")
    with pytest.raises(FileError, match="must be for the mesh 'shop', got one for 'garage'"):
        keys.issue(authority, "a", tmp_path / "keys", trust=[foreign])
    member = keys.issue(authority, "m", tmp_path / "m").certificate
    with pytest.raises(FileError, match="must be the certificate of an authority"):
        keys.issue(authority, "a", tmp_path / "keys", trust=[member])
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("name", ["", "x" * 129, "a\nb", "ü" * 65, None, 7])
def test_names_are_checked(authority, tmp_path, name):
    with pytest.raises(InputError, match="1 to 128 bytes of printable text"):
        keys.issue(authority, name, tmp_path / "keys")
    with pytest.raises(InputError, match="1 to 128 bytes of printable text"):
        keys.init(tmp_path / "new", name)


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "~", "a\\b", "C:x", "%2F", "authorities", "*"])
def test_names_of_files_stay_in_their_folder(name):
    found = file_name(name)
    assert not set(found) & set('/\\:*?"<>|')
    assert KeyFiles.of("keys", name).certificate.parent.name == "keys"
    assert KeyFiles.of("keys", name).authorities not in KeyFiles.of("keys", name)[:2]


def test_different_names_have_different_files():
    names = ["a/b", "a%2Fb", "a b", "a%20b", "ü", "%C3%BC", ".", ".."]
    assert len({file_name(name) for name in names}) == len(names)


@pytest.mark.parametrize("part", KeyFiles._fields)
@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "foreign"])
def test_unusable_files_are_one_line(authority, tmp_path, part, damage):
    files = keys.issue(authority, "a", tmp_path / "keys")
    path = getattr(files, part)
    if damage == "missing":
        path.unlink()
    elif damage == "foreign":
        Authority(tmp_path / "elsewhere").issue("a")
        path.write_bytes((tmp_path / "elsewhere" / "a" / path.name).read_bytes())
    else:
        path.write_bytes(b"-----BEGIN nonsense" if damage == "garbage" else b"")
    with pytest.raises(FileError) as caught:
        identity.contexts(files)
    assert len(str(caught.value).splitlines()) == 1
    assert str(tmp_path / "keys") in str(caught.value)


def test_three_authorities_in_a_file_are_refused(authority, tmp_path):
    files = keys.issue(authority, "a", tmp_path / "keys")
    files.authorities.write_bytes(files.authorities.read_bytes() * 3)
    with pytest.raises(FileError, match="must hold at most 2 certificates, got 3"):
        identity.contexts(files)


def test_folder_that_is_no_authority_is_refused(tmp_path):
    with pytest.raises(
        FileError, match="must be an authority's folder, got none; make one with 'banditmesh keys init'"
    ):
        keys.issue(tmp_path, "a", tmp_path / "keys")


def test_authority_with_another_key_is_refused(authority, tmp_path):
    keys.init(tmp_path / "other", "shop")
    (authority / "authority.key").write_bytes((tmp_path / "other" / "authority.key").read_bytes())
    with pytest.raises(FileError, match=r"authority\.key must be the key of"):
        keys.issue(authority, "a", tmp_path / "keys")


def test_expired_authority_issues_nothing(authority, tmp_path, monkeypatch):
    later = keys._now() + 3651 * 86400
    monkeypatch.setattr(keys, "_now", lambda: later)
    with pytest.raises(InputError, match="has expired; make a new one"):
        keys.issue(authority, "a", tmp_path / "keys")


def test_certificate_for_no_member_has_no_identity():
    class Nobody:
        def __init__(self, *names):
            self.names = names

        def getpeercert(self):
            return {"subjectAltName": self.names, "notBefore": "Jan  5 09:34:43 2030 GMT"}

    for names in ((), (("DNS", "a"),), (("URI", "http://shop/a"),), (("URI", "banditmesh://s/a"),) * 2):
        with pytest.raises(RefusedError) as caught:
            peer_identity(Nobody(*names))
        assert caught.value.reason == "bad_uri"


# Notices.


def test_expulsion_is_of_all_certificates_until_now_and_of_none_after(authority, tmp_path):
    files = keys.issue(authority, "a", tmp_path / "keys")
    old = identity.contexts(files).own
    notice = keys.expel(authority, "a")
    with pytest.raises(InputError, match="'a' was expelled, and with it this key"):
        keys.renew(authority, "a", tmp_path / "keys")
    new = identity.contexts(keys.issue(authority, "a", tmp_path / "keys", force=True))
    found = notices.verify(notice.read_bytes(), new.signers)
    assert found.node == "a"
    assert old.not_before < found.before <= new.own.not_before
    keys.renew(authority, "a", tmp_path / "keys")
    keys.issue(authority, "b", tmp_path / "keys")


def test_a_new_authority_renews_nobody_whom_the_old_one_has_expelled(tmp_path, caplog):
    old, new = keys.init(tmp_path / "old", "shop"), keys.init(tmp_path / "new", "shop")
    for name in ("a", "b"):
        keys.issue(tmp_path / "old", name, tmp_path / "keys")
    keys.expel(tmp_path / "old", "a")
    before = content(tmp_path / "keys")
    with pytest.raises(InputError, match="'a' was expelled, and with it this key; issue a new one"):
        keys.renew(tmp_path / "new", "a", tmp_path / "keys", trust=[old])
    assert content(tmp_path / "keys") == before
    keys.renew(tmp_path / "new", "b", tmp_path / "keys", trust=[old])
    # Whoever holds the name now gets a new key, and a certificate that the expulsion does not touch.
    [notice] = (tmp_path / "old" / "notices").iterdir()
    fresh = identity.contexts(keys.issue(tmp_path / "new", "a", tmp_path / "fresh", trust=[old]))
    assert fresh.own.not_before >= notices.verify(notice.read_bytes(), fresh.signers).before
    # While both are trusted, the new one's expulsions count for the old one, too.
    keys.issue(tmp_path / "old", "c", tmp_path / "keys", trust=[new], force=True)
    keys.expel(tmp_path / "new", "c")
    with pytest.raises(InputError, match="'c' was expelled"):
        keys.renew(tmp_path / "old", "c", tmp_path / "keys", trust=[new])
    assert not caplog.messages


def test_expulsions_that_cannot_be_looked_up_are_said(tmp_path, caplog):
    old = keys.init(tmp_path / "old", "shop")
    keys.init(tmp_path / "new", "shop")
    keys.issue(tmp_path / "old", "a", tmp_path / "keys")
    copy = tmp_path / "copied.crt"
    copy.write_bytes(old.read_bytes())
    keys.renew(tmp_path / "new", "a", tmp_path / "keys", trust=[copy])
    [line] = caplog.messages
    assert line == f"whether 'a' was expelled is not known: {copy} lies in no authority's folder, name it there"


def test_expulsion_from_the_future_is_refused_instead_of_waited_for(authority, tmp_path, monkeypatch):
    now = keys._now()
    monkeypatch.setattr(keys, "_now", lambda: now + 3600)
    keys.expel(authority, "a")
    monkeypatch.setattr(keys, "_now", lambda: now)
    with pytest.raises(InputError, match="correct this machine's clock"):
        keys.issue(authority, "a", tmp_path / "keys")


def test_notices_are_kept_and_none_replaces_another(authority, tmp_path):
    signers = identity.contexts(keys.issue(authority, "a", tmp_path / "keys")).signers
    paths = [keys.retire(authority, "a", epochs) for epochs in ([1, 2], [1], [1, 2, 3])]
    assert len(set(paths)) == 3
    lives = [notices.verify(path.read_bytes(), signers).lives for path in paths]
    assert lives[2] == (("a", 1), ("a", 2), ("a", 3))
    with pytest.raises(InputError, match="at least one life, got none"):
        keys.retire(authority, "a", [])


# The verbs.


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line in a folder of its own: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["keys", *arguments])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


def refused(outcome, status, *words):
    code, out, err = outcome
    assert (code, out, err.count("\n")) == (status, "", 1)
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_verbs_make_a_mesh(run, tmp_path):
    code, out, err = run("init", "--mesh", "shop")
    assert (code, err) == (0, "")
    assert "the authority of shop" in out
    assert run("issue", "a", "b") == (
        0,
        "keys/a.pem\nkeys/a.key\nkeys/authorities.crt\nkeys/b.pem\nkeys/b.key\nkeys/authorities.crt\n",
        "",
    )
    assert run("renew", "a", "b", "--days", "7") == (0, "keys/a.pem\nkeys/b.pem\n", "")
    one, other = (identity.contexts(KeyFiles.of(tmp_path / "keys", name)) for name in ("a", "b"))
    assert handshake(one, other) == (one.own, other.own)
    refused(run("issue", "a"), 2, "keys/a.pem must not exist yet", "--force")
    assert run("issue", "a", "--force")[0] == 0


def test_verbs_write_notices_and_say_what_to_do_with_them(run, tmp_path):
    run("init", "--mesh", "shop")
    run("issue", "a")
    signers = identity.contexts(KeyFiles.of(tmp_path / "keys", "a")).signers
    for arguments, kind in (
        (["expel", "a"], notices.Expulsion),
        (["retire", "a", "--epoch", "00c0ffee00c0ffee", "--epoch", "0000000000000001"], notices.Retirement),
    ):
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        path, line = out.splitlines()
        assert line.startswith(f"hand it to any node: banditmesh node notice {path} --url http://")
        assert isinstance(notices.verify((tmp_path / path).read_bytes(), signers), kind)


@pytest.fixture
def sidecar():
    """What answers like a sidecar that knows two lives of `b/ü`, one of `a`, and none of others."""
    lives = {"/v1/lives/b%2F%C3%BC": ["00000000000000ff", "0000000000000001"], "/v1/lives/a": ["000000000000000a"]}

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = json.dumps({"lives": lives.get(self.path, [])}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_retire_asks_a_node_which_lives_it_knows(run, sidecar, tmp_path):
    run("init", "--mesh", "shop")
    run("issue", "a")
    _, out, err = run("retire", "b/ü", "--node", sidecar)
    assert err == ""
    signers = identity.contexts(KeyFiles.of(tmp_path / "keys", "a")).signers
    found = notices.verify((tmp_path / out.splitlines()[0]).read_bytes(), signers)
    assert found.lives == (("b/ü", 1), ("b/ü", 255))
    refused(run("retire", "c", "--node", sidecar), 2, "there must be a life of 'c'", "knows none")
    # All lives of several members, as far as any node knows them, in one notice.
    (tmp_path / "gone.txt").write_text("# gone\nb/ü\n\nc\n", encoding="utf-8")
    _, out, err = run("retire", "--names", "gone.txt", "--all-lives", "--node", sidecar, "--node", sidecar)
    assert err == "no life of 'c' is known\n"
    several = notices.verify((tmp_path / out.splitlines()[0]).read_bytes(), signers)
    assert several.lives == found.lives
    _, out, _ = run("retire", "a", "b/ü", "--all-lives", "--node", sidecar)
    [notice] = (tmp_path / "authority" / "notices").glob("retire-a*")
    assert out.splitlines()[0] == str(notice.relative_to(tmp_path))
    assert {name for name, _ in notices.verify(notice.read_bytes(), signers).lives} == {"a", "b/ü"}


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], ["Missing command"]),
        (["issue"], ["NAME"]),
        (["init"], ["--mesh"]),
        (["issue", "a"], ["authority must be an authority's folder", "banditmesh keys init"]),
        (["retire", "a"], ["--all-lives, by --node or by --epoch"]),
        (["retire", "--all-lives"], ["NAME... or by --names FILE"]),
        (["retire", "a", "--names", "gone.txt", "--all-lives"], ["NAME... or by --names FILE"]),
        (["retire", "a", "b", "--epoch", "00c0ffee00c0ffee"], ["--epoch is of one member, got 2"]),
        (["retire", "a", "--all-lives", "--epoch", "00c0ffee00c0ffee"], ["--node or by --epoch"]),
        (["retire", "a", "--node", "http://127.0.0.1:1", "--epoch", "00"], ["--node or by --epoch"]),
        (["retire", "a", "--epoch", "ff"], ["16 hexadecimal digits", "'ff'"]),
        (["expel", ""], ["authority must be an authority's folder"]),
        (["init", "--mesh", "x" * 200], ["mesh must be 1 to 128 bytes"]),
    ],
    ids=" ".join,
)
def test_wrong_use_is_one_line_and_status_2(run, arguments, words):
    refused(run(*arguments), 2, *words)


@pytest.mark.parametrize("verb", [[], ["init"], ["issue"], ["renew"], ["retire"], ["expel"]], ids=" ".join)
def test_help_has_examples(run, verb):
    code, out, err = run(*verb, "--help")
    assert (code, err) == (0, "")
    assert f"banditmesh keys {' '.join(verb)}" in out
    assert "\\b" not in out


def test_help_needs_nothing_of_the_extra():
    script = (
        "import sys\n"
        "from banditmesh.cli import cli\n"
        "cli.main(['keys', 'issue', '--help'], standalone_mode=False, obj={})\n"
        "assert 'cryptography' not in sys.modules and 'ssl' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300, stdout=subprocess.DEVNULL)


def test_missing_extra_is_named_with_its_remedy(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    code, out, err = run("init", "--mesh", "shop")
    assert (code, out) == (1, "")
    assert "install it with: pip install 'banditmesh[live]'" in err
