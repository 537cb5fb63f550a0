"""What a node is told: every mistake is a line with its key, and what is written can be read."""

import re
import time
import tomllib
from pathlib import Path

import msgspec
import pytest

import banditmesh as bm
from banditmesh.errors import ConfigError, InputError
from banditmesh.live import config
from banditmesh.live.bandits import BanditSpec
from banditmesh.live.config import NodeConfig, file_problems, file_warnings
from banditmesh.live.statistics import ArmSpec
from banditmesh.live.template import protocol_lines, refuse_live, runs_live, template, toml
from banditmesh.live.transport import keys
from banditmesh.live.transport.identity import KeyFiles
from banditmesh.lookup import registry
from banditmesh.protocols import AnyProtocol
from banditmesh.protocols.notation import needs_ttl
from banditmesh.settings import parts

PAGE = Path(__file__).parents[2] / "docs" / "live" / "configuration.md"
LEAST = """
mesh = "shop"
node = "a"
plain = true
"""
ARM = """
[[arms]]
name = "red"
"""


def problems(tmp_path, text):
    """What is wrong with a file, without its name, which every line begins with."""
    path = tmp_path / "node.toml"
    path.write_text(text, encoding="utf-8")
    found = config.check(path)
    assert all(line.startswith(f"{path}: ") and "\n" not in line for line in found), found
    return [line.removeprefix(f"{path}: ") for line in found]


def loaded(tmp_path, text):
    path = tmp_path / "node.toml"
    path.write_text(text, encoding="utf-8")
    return config.load(path)


def test_the_least_file_has_the_defaults_of_the_class(tmp_path):
    found = loaded(tmp_path, LEAST + ARM)
    by_hand = NodeConfig(mesh="shop", node="a", plain=True, arms=[ArmSpec("red")], state=tmp_path / "state")
    assert found == by_hand
    assert found.protocol == bm.FwA(4)
    assert found.policy == bm.UCB()


def test_every_key_can_be_given(tmp_path):
    text = """
    mesh = "shop"
    node = "berlin 3"
    listen = "[::1]:7700"
    state = "data"
    accept = "members"
    ignore = ["c", ["d", "00000000000000ff"]]
    max_ttl = 8
    ticket_lifetime = 60
    log = "json"
    log_level = "debug"
    protocol = "gossip(3, fanout=2)"
    policy = "thompson"
    emission = {name = "growth", factor = 0.5}
    [[arms]]
    name = "red"
    law = "gaussian"
    sigma = 2
    reward_range = [-1, 1.5]
    [[neighbours]]
    name = "b"
    address = "10.0.0.8:7700"
    [[neighbours]]
    name = "c"
    [keys]
    certificate = "x.pem"
    key = "/y.key"
    authorities = "z.crt"
    [api]
    listen = "0.0.0.0:80"
    token_file = "token"
    hosts = ["node.internal"]
    [caps]
    links = 3
    """
    found = loaded(tmp_path, text)
    assert found.state == tmp_path / "data"
    assert found.ignore == ["c", ("d", 255)]
    assert found.protocol == bm.Gossip(3, fanout=2, emission=bm.Growth(0.5))
    assert found.policy == bm.ThompsonSampling()
    assert found.arms == [ArmSpec("red", "gaussian", 2.0, (-1.0, 1.5))]
    assert [neighbour.address for neighbour in found.neighbours] == ["10.0.0.8:7700", None]
    assert found.keys == KeyFiles(tmp_path / "x.pem", Path("/y.key"), tmp_path / "z.crt")
    assert found.api.token_file == tmp_path / "token"
    assert (found.caps.links, found.caps.arms, found.max_ttl, found.ticket_lifetime) == (3, 10_000, 8, 60.0)


@pytest.mark.parametrize(
    "text",
    [
        'protocol = "fwa(4)+growth(0.25)"',
        'protocol = "fwa(4)"\nemission = "growth"',
        'protocol = {name = "fwa", ttl = 4}\nemission = {name = "growth", factor = 0.25}',
    ],
)
def test_protocols_are_written_as_in_specs(tmp_path, text):
    assert loaded(tmp_path, f"{LEAST}{text}{ARM}").protocol == bm.FwA(4, emission=bm.Growth(0.25))


WRONG = {
    'lisen = "127.0.0.1:7700"': "lisen is an unknown key; did you mean 'listen'?",
    'listen = "7700"': "listen must be host:port",
    'listen = "127.0.0.1:70000"': "listen must have a port of at most 65535, got 70000",
    'listen = "10.0.0.1:7700"': "listen must be on loopback, such as 127.0.0.1:7700, where plain = true",
    "state = 3": "state must be a path, got 3",
    'accept = "all"': "accept must be one of neighbours, members; got 'all'",
    "ignore = 'c'": "ignore must be a list, got 'c'",
    'ignore = ["c", ["d"]]': 'ignore[2] must be "name" or ["name", "epoch"], got [\'d\']',
    'ignore = [["d", "zz"]]': "ignore[1]: an epoch must be 16 hexadecimal digits",
    "max_ttl = 0": "max_ttl must be an integer of at least 1 and at most 32768, got 0",
    "max_ttl = true": "max_ttl must be an integer of at least 1 and at most 32768, got True",
    "ticket_lifetime = nan": "ticket_lifetime must be a positive number, got nan",
    'log = "xml"': "log must be one of plain, json; got 'xml'",
    "log_level = 1": "log_level must be one of debug, info, warning, error; got 1",
    'protocol = "fwa"': "[protocol]: ttl is required, got none",
    'protocol = "fwa(0)"': "[protocol]: ttl must be an integer of at least 1",
    'protocol = "fwa(4"': "[protocol]: a protocol must be written like fwa, fwa(4)",
    'protocol = "fwa(4)+growth"\nemission = "growth"': "[protocol]: give the emission with it or as [emission], got",
    'protocol = {name = "fwaa", ttl = 4}': "[protocol]: name must be one of irs, ",
    'protocol = {name = "fwa", tll = 4}': "[protocol]: tll is an unknown key; did you mean 'ttl'?",
    "protocol = {ttl = 4}": "[protocol]: name is required, got {'ttl': 4}",
    "protocol = 4": "[protocol]: name must be one of irs, ",
    'policy = "mine:Policy@0123456789abcdef"': "[policy]: name must be one of ",
    'emission = "growth"': "[emission]: a [protocol] is required with it, got none",
    'protocol = "fwa(4)"\nemission = {name = "growth", factor = -1}': "[emission]: factor must be a number of at least",
    'protocol = "fwa(4)"\nemission = {name = "growth", factor = "a"}': "[emission]: factor must be a number, got 'a'",
    'protocol = "centralised"': "protocol 'centralised' cannot run live",
    'policy = {name = "ucb", alpha = 0}': "[policy]: alpha must be a positive number, got 0",
    'policy = "ucb-v"': "policy 'ucb-v' cannot run live: it needs the variance",
    'policy = "klucb"': "policy 'klucb' must know the sigma of every arm, got none for arm 'red'",
    "neighbours = 3": "[[neighbours]]: a list of tables is required, got 3",
    "neighbours = [3]": "[[neighbours]] 1: a table is required, got 3",
    'neighbours = [{name = "b"}, {address = "localhost:1"}]': "[[neighbours]] 2: name is required, got none",
    'neighbours = [{name = "b"}, {name = "b"}]': "[[neighbours]]: names must differ, got 'b' more than once",
    'neighbours = [{name = "a"}]': "[[neighbours]]: a node is no neighbour of itself, got 'a'",
    'neighbours = [{name = "b", address = "10.0.0.1:1"}]': "[[neighbours]] 1: address must be on loopback",
    'keys = {certificate = "a", key = "b"}': "[keys]: authorities is required, got none",
    'api = {listen = "0.0.0.0:80"}': "[api]: token_file is required where listen is not on loopback",
    'api = {listen = "somewhere:80"}': '[api]: listen must be an IP address and a port, or "unix:PATH"',
    'api = {hosts = [""]}': "[api]: hosts[1] must be a string, got ''",
    "caps = {links = 0}": "[caps]: links must be an integer of at least 1, got 0",
    "caps = {linsk = 1}": "[caps]: linsk is an unknown key; did you mean 'links'?",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_value_is_one_line_with_its_key(tmp_path, text):
    [line] = problems(tmp_path, f"{LEAST}{text}{ARM}")
    assert line.startswith(WRONG[text])


WRONG_ARMS = {
    '[[arms]]\nname = "r"\n[[arms]]\nname = "s"\nsigma = -1': "[[arms]] 2: sigma must be a positive number, got -1",
    "[[arms]]\nname = 3": "[[arms]] 1: name must be 1 to 128 bytes of printable text, got 3",
    '[[arms]]\nname = "r"\nlaw = "normal"': "[[arms]] 1: law must be one of gaussian, bernoulli, uniform, other",
    '[[arms]]\nname = "r"\nreward_range = [1, 0]': "[[arms]] 1: reward_range must be two numbers, the lower one first",
    '[[arms]]\nname = "r"\nreward_range = [0, inf]': "[[arms]] 1: reward_range[2] must be a finite number, got inf",
    '[[arms]]\nname = "r"\nreward_range = [0, 1e300]': "[[arms]] 1: reward_range of arm 'r' must be",
    '[[arms]]\nname = "r"\n[[arms]]\nname = "r"': "[[arms]]: names must differ, got 'r' more than once",
    '[arms]\nname = "r"': "[[arms]]: a list of tables is required",
    "": "arms is required, got none",
}


@pytest.mark.parametrize("text", WRONG_ARMS)
def test_a_wrong_arm_is_one_line_with_its_number(tmp_path, text):
    [line] = problems(tmp_path, LEAST + text)
    assert line.startswith(WRONG_ARMS[text])


def test_all_problems_are_shown_at_once(tmp_path):
    text = 'mesh = ""\nlisen = 1\n[[arms]]\nname = "r"\nsigma = 0\nlaw = 1\n[api]\nlisten = 2\n'
    found = problems(tmp_path, text)
    assert [line.split(" must")[0].split(";")[0] for line in found] == [
        "mesh",
        "lisen is an unknown key",
        "[[arms]] 1: sigma",
        "[[arms]] 1: law",
        "[api]: listen",
        "node is required, got none",
    ]
    with pytest.raises(ConfigError, match="mesh must be") as caught:
        loaded(tmp_path, text)
    assert len(caught.value.problems) == len(found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"mesh = ", "is not valid TOML"),
        (b"mesh = \xff", "must be a text file in UTF-8"),
        (b"max_ttl = " + b"9" * 5000, "is not valid TOML"),
        (b"a = " + b"[" * 5000, "at most 20 deep"),
    ],
)
def test_what_is_no_toml_is_one_line(tmp_path, content, message):
    path = tmp_path / "node.toml"
    path.write_bytes(content)
    [line] = config.check(path)
    assert message in line
    assert "\n" not in line


def test_a_node_without_arms_only_relays(tmp_path):
    assert loaded(tmp_path, f"{LEAST}arms = []").arms == []


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    [line] = config.check(tmp_path / "node.toml")
    assert line == f"cannot read {tmp_path / 'node.toml'}: No such file or directory"


def test_links_without_keys_must_be_asked_for(tmp_path):
    [line] = problems(tmp_path, f'mesh = "m"\nnode = "a"{ARM}')
    assert line.startswith("[keys] is required, got none")


@pytest.mark.parametrize(
    ("given", "message"),
    [({"mesh": ""}, "mesh must be"), ({"accept": "all"}, "accept must be"), ({"max_ttl": 0}, "max_ttl must be")],
)
def test_a_configuration_made_by_hand_is_checked_too(given, message):
    with pytest.raises(ConfigError, match=message):
        NodeConfig(**{"mesh": "shop", "node": "a", "plain": True, "arms": [ArmSpec("red")], **given})


LIVE = [bm.NoCooperation(), bm.IRS(), bm.Flooding(4), bm.FwA(4), bm.Gossip(4, fanout=2), bm.ProbabilisticFlooding(3)]
NOT_LIVE = {
    "tree": (bm.TreeAggregation(), None, "needs a network that never changes; take fwa"),
    "centralised": (bm.Centralised(), None, "to all agents at once; take fwa"),
    "contested": (bm.FwA(4, emission=bm.Contested()), None, r"take growth\(0.25\) or every-pull"),
    "echoes": (bm.FwA(4, emission=bm.Growth(0.25, echoes=1)), None, "set echoes to 0"),
    "ucb-v": (bm.FwA(4), bm.UCBV(), "take ucb or klucb"),
}


@pytest.mark.parametrize("protocol", LIVE, ids=repr)
@pytest.mark.parametrize("emission", [bm.EveryPull(), bm.Growth(0.5)], ids=repr)
def test_what_sends_counts_and_sums_hop_by_hop_runs_live(protocol, emission):
    refuse_live(protocol.with_emission(emission), bm.UCB())


@pytest.mark.parametrize("what", NOT_LIVE)
def test_what_cannot_run_live_says_what_to_take_instead(what):
    protocol, policy, message = NOT_LIVE[what]
    with pytest.raises(InputError, match=f"cannot run live.*{message}"):
        refuse_live(protocol, policy)
    assert not runs_live(protocol, policy)


def test_every_shipped_protocol_and_policy_is_decided_on():
    runs = {name for name, part in parts.parts("policy").items() if runs_live(bm.IRS(), part.make())}
    assert runs == {*parts.parts("policy")} - {"ucb-v"}
    kinds = {kind.name: kind for kind in registry.shipped(AnyProtocol)}
    shipped = {name for name, kind in kinds.items() if not registry.is_algorithm(kind)}
    assert {protocol.name for protocol in LIVE} == shipped - {"tree", "centralised"}
    # Of algorithms, those that are names of protocols.
    made = [kind(ttl=3) if needs_ttl(kind) else kind() for kind in kinds.values() if registry.is_algorithm(kind)]
    assert {one.name for one in made if runs_live(one)} == {"co-ucb", "mp-ucb", "ucb-network"}


def test_a_policy_with_a_chooser_of_its_own_cannot_run_live():
    class Keeping(bm.UCB):
        name = "keeping"

        def chooser(self, arms):
            return bm.policies.Chooser(self, arms)

    with pytest.raises(InputError, match="keeps its own state"):
        refuse_live(bm.IRS(), Keeping())


def test_an_emission_of_ones_own_that_leaves_out_rewards_cannot_run_live():
    class EveryTenth(bm.Emission):
        name = "every-tenth"

        @staticmethod
        def sends(own_count, sent_count, is_best, parameter):
            return own_count % 10 == 1

    with pytest.raises(InputError, match="'every-tenth' cannot run live"):
        refuse_live(bm.IRS(emission=EveryTenth()))


@pytest.mark.parametrize("protocol", [*LIVE, bm.FwA(3, emission=bm.Growth(1e-20))], ids=repr)
@pytest.mark.parametrize(
    "policy", [bm.UCB(2.5), bm.EpsilonGreedy(0.2, 5.0), bm.MOSS(), bm.ThompsonSampling()], ids=repr
)
def test_written_lines_are_read_as_the_same_protocol_and_policy(tmp_path, protocol, policy):
    arm = '\n[[arms]]\nname = "red"\nsigma = 1.0\n'
    found = loaded(tmp_path, f"{LEAST}\n{protocol_lines(protocol, policy)}{arm}")
    assert (found.protocol, found.policy) == (protocol, policy)


@pytest.mark.parametrize("name", ["berlin", 'ber "lin" \\ 3', "Köln/7", "{mesh}"])
def test_a_new_file_is_right_once_its_keys_are_there(tmp_path, name):
    keys.init(tmp_path / "authority", name)
    keys.issue(tmp_path / "authority", name, tmp_path / "keys")
    text = template(name, name)
    assert problems(tmp_path, text) == []
    found = loaded(tmp_path, text)
    assert (found.mesh, found.node, found.arms[0].name) == (name, name, "red")


def test_comments_of_a_new_file_are_keys_that_can_be_given(tmp_path):
    text = template("m", "n")
    given = re.sub(r"^# (?=[\w]+ = |\[)", "", text, flags=re.MULTILINE)
    tomllib.loads(given)
    given = given.replace("plain = true", "plain = false")
    (tmp_path / "node.toml").write_text(given)
    found = config.load(tmp_path / "node.toml")
    assert found.caps == config.Caps()
    assert found.neighbours
    assert found.api.token_file
    assert found.log == "json"


@pytest.fixture
def secure(tmp_path):
    """A folder with the keys of two nodes and a configuration of the first."""
    keys.init(tmp_path / "authority", "shop")
    for name in ("a", "b"):
        keys.issue(tmp_path / "authority", name, tmp_path / "keys")
    return NodeConfig(
        mesh="shop", node="a", arms=[ArmSpec("red")], keys=KeyFiles.of(tmp_path / "keys", "a"), state=tmp_path / "state"
    )


def changed(given, **changes):
    return NodeConfig(**{**{name: getattr(given, name) for name in given.__struct_fields__}, **changes})


def test_files_that_fit_together_have_no_problem(secure):
    assert file_problems(secure) == []


def test_a_certificate_of_another_node_is_a_problem(secure):
    [line] = file_problems(changed(secure, node="b"))
    assert "must be that of node 'b' of mesh 'shop', got one of node 'a' of mesh 'shop'" in line


def test_a_key_of_another_certificate_is_a_problem(secure):
    other = KeyFiles.of(secure.keys.key.parent, "b")
    [line] = file_problems(changed(secure, keys=secure.keys._replace(key=other.key)))
    assert line.startswith("[keys]: ")
    assert "must be the key of" in line


def test_a_certificate_of_another_authority_is_a_problem(secure, tmp_path):
    keys.init(tmp_path / "another", "shop")
    keys.issue(tmp_path / "another", "a", tmp_path / "others")
    other = KeyFiles.of(tmp_path / "others", "a")
    [line] = file_problems(changed(secure, keys=secure.keys._replace(authorities=other.authorities)))
    assert "must be issued by an authority" in line


@pytest.mark.parametrize(
    "days, line", [(-2, "is valid from"), (0, None), (334, None), (336, "expires at"), (400, "expired at")]
)
def test_a_certificate_that_is_not_valid_now_or_not_for_long_is_a_warning(secure, days, line):
    found = file_warnings(secure, now=time.time() + days * 86400)
    assert [one.startswith(f"[keys]: the certificate {line}") for one in found] == ([] if line is None else [True])


def test_files_that_are_not_there_are_problems(secure, tmp_path):
    gone = secure.keys._replace(key=tmp_path / "gone.key", certificate=tmp_path)
    api = config.ApiConfig(token_file=tmp_path / "no-token")
    found = file_problems(changed(secure, keys=gone, api=api))
    assert [line.split(" must")[0] for line in found[1:]] == ["[keys]: certificate", "[keys]: key"]
    assert found[0].startswith(f"[api]: the token's file {tmp_path / 'no-token'} cannot be read")


def test_a_short_token_is_a_problem(secure, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    [line] = file_problems(changed(secure, api=config.ApiConfig(token_file=tmp_path / "token")))
    assert "must hold one word of at least 16" in line


def test_a_token_that_all_users_can_read_is_warned_of_and_no_problem(secure, tmp_path, caplog):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    given = changed(secure, api=config.ApiConfig(token_file=token))
    for mode, n_warnings in ((0o600, 0), (0o640, 0), (0o644, 1)):
        token.chmod(mode)
        assert file_problems(given) == []
        assert len(caplog.messages) == n_warnings
    assert f"chmod o= {token}" in caplog.messages[0]


def test_a_state_folder_that_cannot_be_made_is_a_problem(secure, tmp_path):
    (tmp_path / "file").write_text("")
    [line] = file_problems(changed(secure, state=tmp_path / "file" / "state"))
    assert line.startswith("state must be a folder, got")


def test_the_page_has_every_key_with_its_default():
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \| [^|]+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    written = {key: default.strip("`") for key, default in rows}
    tables = {"": NodeConfig, "arms.": ArmSpec, "bandits.": BanditSpec, "neighbours.": config.NeighbourConfig}
    known = {
        f"{table}{field.name}": _default(field)
        for table, kind in (
            *tables.items(),
            ("api.", config.ApiConfig),
            ("caps.", config.Caps),
            ("trust.", config.TrustConfig),
        )
        for field in msgspec.structs.fields(kind)
    }
    known |= {f"keys.{key}": "required" for key in KeyFiles._fields}
    described = {"arms", "bandits", "neighbours", "api", "keys", "caps", "trust", "policy", "protocol"}
    described |= {"bandits.arms", "bandits.policy"}
    assert written == {key: default for key, default in known.items() if key not in described}


def _default(field):
    """The default of a key as the page writes it."""
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None:
        return "none"
    return toml(value) if isinstance(value, str | bool | int | float | Path) else str(value)
