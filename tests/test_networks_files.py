import gzip
import json
import tracemalloc
import zipfile
from io import BytesIO

import networkx as nx
import pandas as pd
import pytest
from scipy.sparse import csr_array, save_npz

import banditmesh as bm
from banditmesh import networks
from banditmesh.draws import Draws
from banditmesh.errors import BanditmeshWarning, FileError, InputError


@pytest.fixture
def write(tmp_path):
    def writer(content, name="links.txt"):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        return path

    return writer


def test_edge_list_of_integers(write):
    graph = networks.read(write("# a comment\n\n0 1\n1\t2 # more\n2,5,1\n1 0 1.0\n"))
    assert list(graph) == [0, 1, 2, 5]
    assert list(graph.edges()) == [(0, 1), (1, 2), (2, 5)]


@pytest.mark.parametrize("text", ["a b\nb c", "a 1\n1 2", "01 1\n1 2"])
def test_names_stay_text_unless_all_are_integers(write, text):
    assert all(isinstance(name, str) for name in networks.read(write(text)))


@pytest.mark.parametrize("suffix", [".txt", ".adjlist"])
def test_name_of_very_many_digits_stays_text(write, suffix):
    name = "7" * 5000
    assert list(networks.read(write(f"{name} 1\n", f"links{suffix}"))) == [name, "1"]


def test_graphml_name_of_very_many_digits_stays_text(tmp_path):
    path = tmp_path / "links.graphml"
    nx.write_graphml(nx.Graph([("7" * 5000, "1")]), path)
    assert list(networks.read(path)) == ["7" * 5000, "1"]


def test_name_of_many_digits_is_an_integer(write):
    assert list(networks.read(write(f"{10**600} -5\n"))) == [10**600, -5]


def test_byte_order_mark_and_windows_lines_are_read(write):
    assert list(networks.read(write(b"\xef\xbb\xbf0 1\r\n1 2\r\n"))) == [0, 1, 2]


def test_adjacency_list_keeps_agents_without_links(write):
    graph = networks.read(write("0 1 2\n1 0\n3\n", "links.adjlist"))
    assert list(graph) == [0, 1, 2, 3]
    assert list(graph.edges()) == [(0, 1), (0, 2)]


GRAPH = nx.path_graph(4)
NAMED = nx.relabel_nodes(GRAPH, {v: f"agent {v}" for v in GRAPH})


@pytest.mark.parametrize(
    "suffix, save", [(".graphml", nx.write_graphml), (".gml", nx.write_gml), (".adjlist", nx.write_adjlist)]
)
def test_what_networkx_writes_comes_back(tmp_path, suffix, save):
    path = tmp_path / f"links{suffix}"
    save(GRAPH, path)
    again = networks.read(path)
    assert list(again) == list(GRAPH)
    assert list(again.edges()) == list(GRAPH.edges())


def save_matrix(graph, path):
    save_npz(path, nx.to_scipy_sparse_array(graph))


@pytest.mark.parametrize(
    "suffix, save",
    [
        (".graphml", nx.write_graphml),
        (".gml", nx.write_gml),
        (".adjlist", nx.write_adjlist),
        (".edgelist", lambda graph, path: nx.write_edgelist(graph, path, data=False)),
        (".npz", save_matrix),
    ],
)
@pytest.mark.parametrize("ending", [".gz", ".GZ", ""])
def test_every_format_is_read_packed_by_gzip(tmp_path, suffix, save, ending):
    plain = tmp_path / f"links{suffix}"
    save(GRAPH, plain)
    packed = tmp_path / f"packed{suffix}{ending}"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    names, links = networks.as_links(networks.read(packed))
    assert (list(names), links.pairs().tolist()) == ([0, 1, 2, 3], [[0, 1], [1, 2], [2, 3]])


def test_contact_trace_is_read_packed_by_gzip(write):
    assert networks.read_contact_trace(write(gzip.compress(b"1 a b\n"), "contacts.gz")).names == ("a", "b")


def test_format_of_a_packed_file_is_told_by_content_if_not_by_suffix(tmp_path):
    nx.write_gml(NAMED, tmp_path / "links.gz")
    assert list(networks.read(tmp_path / "links.gz").edges()) == list(NAMED.edges())


@pytest.mark.parametrize("save", [nx.write_graphml, nx.write_gml])
def test_format_is_told_by_content_if_not_by_suffix(tmp_path, save):
    path = tmp_path / "links"
    save(NAMED, path)
    assert list(networks.read(str(path)).edges()) == list(NAMED.edges())


def test_gml_with_a_header_and_without_labels_is_named_by_ids(write):
    text = 'Creator "somebody"\ngraph [\n  node [ id 7 ]\n  node [ id 3 ]\n  edge [ source 7 target 3 ]\n]\n'
    assert list(networks.read(write(text)).edges()) == [(7, 3)]


@pytest.mark.parametrize("name", ["links.npz", "links"])
def test_sparse_matrix_comes_back(tmp_path, name):
    save_npz(tmp_path / "links.npz", csr_array([[0, 1], [1, 0]]))
    path = (tmp_path / "links.npz").rename(tmp_path / name)
    assert networks.from_sparse(networks.read(path))[1].n_links == 1


@pytest.mark.parametrize(
    "text, message",
    [
        ("0 1\n\n0\n", "line 3: an edge list has two agents on a line, got 1 entries"),
        ("0 1\n0 1 2 3\n", "line 2: an edge list has two agents on a line, got 4 entries"),
        ("0 1\n# x\n1 2 0.5\n", "line 3: network must be unweighted, got the weight '0.5'"),
        ("0 1 {}\n", "line 1: network must be unweighted, got the weight '{}'"),
        ("0 1\n2 2\n", "line 2: network must have no self-loops, got a link from '2' to itself"),
        ("# nothing\n", "must describe a network, got nothing but comments"),
        ("", "must describe a network, got an empty file"),
        (" \n \n", "must describe a network, got an empty file"),
        (b"\x89\x00\xff\xfe" * 50, "must be a text file in UTF-8, got binary data"),
        (b"0 1\n\x00", "must be a text file in UTF-8, got binary data"),
    ],
)
def test_malformed_edge_list_is_refused_with_path_and_line(write, text, message):
    path = write(text)
    with pytest.raises(FileError, match=message) as caught:
        networks.read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n{}\n</graphml>\n'
DIRECTED = '<graph edgedefault="directed"><node id="0"/><node id="1"/><edge source="0" target="1"/></graph>'


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.adjlist", "0 1\n1 1 2\n", "line 2: network must have no self-loops, got a link from '1'"),
        ("a.graphml", "<graphml>\n<graph>\n", "line 3: not valid GraphML"),
        ("a.graphml", "0 1\n", "line 1: not valid GraphML"),
        ("a.graphml", "<html/>", "must be a network file, got an HTML page; download the file that it is about"),
        ("a.graphml", "<svg/>", "must be a GraphML network"),
        ("a.graphml", GRAPHML.format(DIRECTED), "network must be undirected, got a DiGraph"),
        ("a.gml", "graph [\n  node [ id 0 ]\n  ?\n]\n", r"must be a GML network, got: .* at \(3, 3\)"),
        ("a.gml", "graph [\n  node [ id 0 ]\n", "must be a GML network, got: "),
        ("a.gml", "graph [ ]\n", "network must have at least one agent"),
        ("a.gml", "nothing\n", "must be a GML network"),
        ("a.npz", b"garbage", "must be a sparse matrix saved by scipy"),
        ("a.npz", b"\x93NUMPY\x01\x00", "must be a sparse matrix saved by scipy"),
        ("a.npz", b"PK\x03\x04 cut short", "must be a sparse matrix saved by scipy"),
    ],
)
def test_other_malformed_files_are_refused(write, name, content, message):
    path = write(content, name)
    with pytest.raises(FileError, match=message) as caught:
        networks.read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["none.txt", "none.gml", "none.graphml", "none.adjlist", "none.npz"])
def test_missing_file_is_refused(tmp_path, name):
    with pytest.raises(FileError, match="must be a network file, got no such file"):
        networks.read(tmp_path / name)


@pytest.mark.parametrize("reader", [networks.read, networks.read_edge_list, networks.read_adjacency])
@pytest.mark.parametrize("path, got", [("", "''"), (" ", "' '"), (5, "5"), (None, "None")])
def test_what_is_no_path_is_refused(reader, path, got):
    with pytest.raises(FileError, match=f"path must name a network file, got {got}$"):
        reader(path)


def test_path_with_a_null_character_is_refused():
    with pytest.raises(FileError, match=r"'a\\x00b' must be a path, got: embedded null"):
        networks.read("a\0b")


def test_folder_is_refused(tmp_path):
    with pytest.raises(FileError, match="must be a network file, got a folder"):
        networks.read(tmp_path)


def test_asymmetric_saved_matrix_is_refused(tmp_path):
    save_npz(tmp_path / "a.npz", csr_array([[0, 1], [0, 0]]))
    with pytest.raises(FileError, match=r"a\.npz: an adjacency matrix must be symmetric"):
        networks.read_adjacency(tmp_path / "a.npz")


def test_contact_trace_is_read(write):
    trace = networks.read_contact_trace(write("# round i j\n1 4 7\n3,7,9\n1 7 4\n"))
    assert trace.names == (4, 7, 9)
    assert [links.tolist() for links in trace.rounds(Draws(0, 0))] == [[[0, 1]], [], [[1, 2]]]


@pytest.mark.parametrize(
    "text, message",
    [
        ("1 a b\n2 a\n", "line 2: a contact is a round and two agents, got 2 entries"),
        ("0 a b\n", "line 1: a round must be an integer of at least 1, got '0'"),
        ("1.5 a b\n", "line 1: a round must be an integer of at least 1, got '1.5'"),
        ("7" * 5000 + " a b\n", r"line 1: a round must be an integer of at least 1, got '7{95} \.\.\.$"),
        ("1 a a\n", "line 1: network must have no self-loops, got a link from 'a' to itself"),
        ("# none\n", "got nothing but comments"),
    ],
)
def test_malformed_contact_trace_is_refused(write, text, message):
    with pytest.raises(FileError, match=message):
        networks.read_contact_trace(write(text))


HEADERS = ["from,to\n", "Source,Target\n", "node_1\tnode_2\n", "FromNodeId ToNodeId\n", "from,to,weight\n"]


@pytest.mark.parametrize("links", ["a,b\nb,c\n", "0 1\n1 2\n"])
@pytest.mark.parametrize("header", HEADERS)
def test_header_row_of_an_edge_list_is_no_link(write, header, links):
    for read in (networks.read, lambda path: networks.as_links(networks.read_any(path))[0]):
        assert list(read(write(header + links))) == list(read(write(links)))
    assert networks.read(write(header + links)).number_of_edges() == 2


def test_any_words_above_integers_are_a_header(write):
    assert list(networks.read(write("reader,author\n7,8\n8,9\n"))) == [7, 8, 9]


@pytest.mark.parametrize(
    "text, names",
    [
        ("from,to\nto,a\n", ["from", "to", "a"]),
        ("ann,bob\ncarl,dora\n", ["ann", "bob", "carl", "dora"]),
        ("u v\nw x\n", ["u", "v", "w", "x"]),
        ("ann bob\n", ["ann", "bob"]),
        ("ann 5\n1 2\n", ["ann", "5", "1", "2"]),
        ("5 from\n1 2\n", ["5", "from", "1", "2"]),
    ],
)
def test_first_link_is_no_header(write, text, names):
    assert list(networks.read(write(text))) == names


def test_header_can_be_said(write):
    path = write("from,to\n0,1\n")
    assert list(networks.read(path, header=False)) == ["from", "to", "0", "1"]
    assert list(networks.read(write("ann bob\nann carl\n"), header=True)) == ["ann", "carl"]
    with pytest.raises(FileError, match="got nothing but a header; if it is a link, say header=False"):
        networks.read(write("from,to\n"))
    with pytest.raises(FileError, match="must be an edge list to have a header, got header=True"):
        networks.read(write("0 1\n", "links.adjlist"), header=True)
    with pytest.raises(InputError, match="header must be True, False or None, got 'yes'"):
        networks.read(path, header="yes")


def test_list_as_snap_and_konect_write_it_is_read(write):
    text = "# Directed graph: wiki.txt\n# FromNodeId\tToNodeId\n% sym\n%% more\n30\t1412\n30\t3352\n1412\t30\n"
    path = write(gzip.compress(text.encode()), "wiki-Vote.txt.gz")
    assert list(networks.read(path).edges()) == [(30, 1412), (30, 3352)]
    assert list(networks.read(write("%a b\n")).edges()) == [("%a", "b")]


def test_weights_are_ignored_if_the_caller_says_so(write, tmp_path):
    path = write("from,to,weight,since\na,b,0.5,2019\nb,c,3,2020\n")
    assert list(networks.read(path, weights="ignore").edges()) == [("a", "b"), ("b", "c")]
    with pytest.raises(FileError, match="line 2: an edge list has two agents on a line, got 4 entries"):
        networks.read(path)
    with pytest.raises(FileError, match=r"got the weight '0\.5'; to ignore weights, say weights=\"ignore\""):
        networks.read(write("a b 0.5\n"))
    save_npz(tmp_path / "a.npz", csr_array([[0, 2.5], [2.5, 0]]))
    assert networks.from_sparse(networks.read(tmp_path / "a.npz", weights="ignore"))[1].n_links == 1
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=2.5)
    nx.write_graphml(graph, tmp_path / "a.graphml")
    assert list(networks.read(tmp_path / "a.graphml", weights="ignore").edges(data=True)) == [("a", "b", {})]
    with pytest.raises(FileError, match="unweighted"):
        networks.read(tmp_path / "a.graphml")
    with pytest.raises(InputError, match="weights must be one of refuse, ignore; got 'drop'"):
        networks.read(path, weights="drop")


def test_places_of_agents_are_kept(tmp_path):
    graph = nx.Graph([("a", "b")])
    nx.set_node_attributes(graph, {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 3.0, "y": 4.5}})
    nx.write_graphml(graph, tmp_path / "a.graphml")
    assert dict(networks.read(tmp_path / "a.graphml").nodes(data="pos")) == {"a": (1.0, 2.0), "b": (3.0, 4.5)}
    (tmp_path / "a.gml").write_text(
        "graph [ node [ id 0 graphics [ x 1 y 2.0 ] ] node [ id 1 Longitude 16.4 Latitude 48.2 ] ]\n"
    )
    assert dict(networks.read(tmp_path / "a.gml").nodes(data="pos")) == {0: (1.0, 2.0), 1: (16.4, 48.2)}
    (tmp_path / "b.gml").write_text("graph [ node [ id 0 x 1 y 2 ] node [ id 1 ] ]\n")
    assert dict(networks.read(tmp_path / "b.gml").nodes(data="pos")) == {0: None, 1: None}


@pytest.mark.parametrize(
    "text, n_agents, n_links",
    [("ring:12", 12, 12), ("grid:5x5", 25, 40), ("powerlaw:300,3", 300, 891), ("er:10,1", 10, 45), ("star:4", 4, 3)],
)
def test_generators_are_named_in_a_text(text, n_agents, n_links):
    graph = networks.from_text(text, seed=1)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (n_agents, n_links)
    assert nx.utils.graphs_equal(graph, networks.from_text(text, seed=1))


@pytest.mark.parametrize(
    "text, message",
    [
        ("ring:", "a network by generator must be written ring:N, got 'ring:'"),
        ("ring:3,4", "must be written ring:N, got 'ring:3,4'"),
        ("grid:5", "must be written grid:ROWS,COLUMNS, got 'grid:5'"),
        ("ring:a", "each value of a network by generator must be a number, got 'a'"),
        ("ring:2", "n must be an integer of at least 3, got 2"),
        ("circle:4", "the network's generator must be one of er, ba"),
        (12, "must be a text as in 'ring:12', got 12"),
    ],
)
def test_wrong_generators_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        networks.from_text(text)


@pytest.mark.parametrize("read", [networks.read, networks.read_any])
def test_reading_says_how_far_it_is(write, read):
    seen = []
    path = write("0 1\n" * 70_000)
    read(path, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 3
    assert seen[0][0] < seen[1][0] < seen[2][0]
    assert seen[-1] == (280_000, 280_000)


def links_of(path, **options):
    """The links of a file by name, which both ways of reading agree on."""
    found = []
    for read in (networks.read, networks.read_any):
        names, links = networks.as_links(read(path, **options))
        found.append((list(names), [(names[i], names[j]) for i, j in links.pairs().tolist()]))
    assert found[0] == found[1]
    return found[0][1]


@pytest.mark.parametrize(
    "text, links",
    [
        ("Ann Lee,bob\nbob,Carl Roe\n", [("Ann Lee", "bob"), ("bob", "Carl Roe")]),
        ("Ann Lee\tbob\nbob\tcarl\n", [("Ann Lee", "bob"), ("bob", "carl")]),
        ('"Lee, Ann",bob\nbob,"Roe ""C"" #2" # a link\n', [("Lee, Ann", "bob"), ("bob", 'Roe "C" #2')]),
        ('"Ann Lee" bob\nbob   "Carl Roe"\n', [("Ann Lee", "bob"), ("bob", "Carl Roe")]),
        ("from;to\na;b\nb;c\n", [("a", "b"), ("b", "c")]),
        ("a;b;1,0\n".replace("1,0", "1"), [("a", "b")]),
        ("a, b\nb , c\n", [("a", "b"), ("b", "c")]),
        ("a,b,\nb,c,\n", [("a", "b"), ("b", "c")]),
        ("1|2\n2|3\n", [(1, 2), (2, 3)]),
        ("1::2\n2::3\n", [(1, 2), (2, 3)]),
        ("fe80::1 fe80::2\n", [("fe80::1", "fe80::2")]),
        ("fe80::1,fe80::2\n", [("fe80::1", "fe80::2")]),
    ],
)
def test_what_separates_entries_is_decided_for_the_file(write, text, links):
    assert links_of(write(text)) == links
    assert links_of(write(gzip.compress(text.encode()), "links.gz")) == links


def test_decimal_commas_separate_nothing(write):
    assert links_of(write("a;b;0,5\nb;c;1,5\n"), weights="ignore") == [("a", "b"), ("b", "c")]


@pytest.mark.parametrize("weights", ["refuse", "ignore"])
@pytest.mark.parametrize(
    "text, message",
    [
        (
            "Ann Lee bob\nbob carl\n",
            r"line 1: .* got \['Ann', 'Lee', 'bob'\]; if names hold blanks, separate entries by",
        ),
        ("carl bob\nAnn Lee bob\n", "line 2: an edge list has two agents on a line, got .*; if names hold blanks"),
        ("a b\nLee,Ann bob\n", "line 2: entries must be separated by blanks, as above, got ','; separate all lines"),
        ("a,b\nAnn Lee\n", r"line 2: .* got 1 entries, separated by ',': \['Ann Lee'\]$"),
        ("Lee, Ann;bob\n", "line 1: entries must be separated in one way, got ';' and ','; put entries that hold one"),
        ("a,b\n,c\n", r"line 2: an agent must have a name, got an empty entry in \['', 'c'\]"),
        ('a,b\n"c,d\n', "line 2: not valid CSV, "),
        *(
            (f"{first},{second},{third}\n1,a,b\n2,b,c\n", "line 1: the first two columns must be those of the agents")
            for first, second, third in (("weight", "source", "target"), ("id", "From", "To"), ("", "source", "target"))
        ),
    ],
)
def test_line_that_could_be_another_network_is_refused(write, text, message, weights):
    for read in (networks.read, networks.read_any):
        with pytest.raises(FileError, match=message):
            read(write(text), weights=weights)


def test_names_with_commas_are_not_taken_for_weights(write):
    with pytest.raises(FileError, match=r"got \['Lee', 'Ann Smith', 'Bob'\]; put names that hold ',' in double quotes"):
        networks.read(write("Lee,Ann Smith,Bob\n"))


@pytest.mark.parametrize("text", ["0 2 0\n2 0 3\n0 3 0\n", "0,.5,0,0\n.5,0,1,0\n0,1,0,2\n0,0,2,0\n"])
def test_square_of_weights_is_a_matrix(write, text):
    for read in (networks.read, networks.read_any):
        with pytest.raises(
            FileError, match=r"network must be unweighted, got the weight [02.5]+; to ignore weights, say"
        ):
            read(write(text))
    matrix = networks.read(write(text), weights="ignore").toarray()
    assert (matrix == nx.to_numpy_array(nx.path_graph(len(matrix)))).all()


def test_three_links_with_weights_are_no_matrix(write):
    assert links_of(write("0 1 2\n1 2 3\n2 3 4\n"), weights="ignore") == [(0, 1), (1, 2), (2, 3)]


NODE_LINK = {"directed": False, "nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}
MARKET = "%%MatrixMarket matrix coordinate pattern symmetric\n% a path\n3 3 2\n2 1\n3 2\n"
SQUARE = "0 1 0 0\n1 0 1 0\n0 1 0 1\n0 0 1 0\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "name, content, links",
    [
        ("a.json", json.dumps(NODE_LINK), [("a", "b")]),
        ("a.txt", json.dumps(nx.node_link_data(nx.path_graph(3), edges="edges")), [(0, 1), (1, 2)]),
        ("a.mtx", MARKET, [(0, 1), (1, 2)]),
        ("a.txt", MARKET, [(0, 1), (1, 2)]),
        ("a.csv", SQUARE.replace(" ", ","), [(0, 1), (1, 2), (2, 3)]),
        ("a.txt", SQUARE, [(0, 1), (1, 2), (2, 3)]),
        ("a.edgelist", "\n".join(nx.generate_graphml(NAMED)), list(NAMED.edges())),
        ("a.adjlist", "\n".join(nx.generate_gml(NAMED)), list(NAMED.edges())),
    ],
)
def test_format_is_known_by_content_whatever_the_name(write, name, content, links, packed):
    path = write(gzip.compress(content.encode()) if packed else content, name + ".gz" * packed)
    assert links_of(path) == links


def zipped(name):
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, "0 1\n")
    return stream.getvalue()


@pytest.mark.parametrize(
    "content, message",
    [
        ("[[0, 1], [1, 2]]", 'must be a network in JSON, as in {"nodes": .* got a list'),
        ('{"a": ["b"]}', r"must be a network in JSON, .* got the keys \['a'\]"),
        ('{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}', "must link agents that are in nodes"),
        ('{"nodes": [{"id": [1]}], "links": []}', "must be a network in JSON"),
        ('{"nodes": [{"name": 1}], "links": []}', "must be a network in JSON"),
        (json.dumps({**NODE_LINK, "directed": True}), "network must be undirected, got a DiGraph"),
        ('{"nodes"', "must be valid JSON"),
        ('{"a": ' * 200_000, "must be valid JSON"),
        ("*Vertices 2\n1 2\n", "got Pajek; convert it to GraphML, for instance with networkx"),
        ("graph {\n a -- b\n}\n", "got DOT; convert it"),
        (">>graph6<<A_\n", "got graph6; convert it"),
        ('<gexf xmlns="x"/>', "must be a GraphML network, got GEXF; convert it"),
        (MARKET.replace("3 3 2", "3000000000 3000000000 900000000000"), "must hold what its size line says, got 3,000"),
        (MARKET.replace("2 1\n", "9 1\n"), "must be a Matrix Market file, got: "),
        ("%%MatrixMarket matrix array real general\n100000 100000\n1\n", "must hold what its size line says"),
        ("0 1 0\n0 0 1\n0 1 0\n", "an adjacency matrix must be symmetric"),
        (
            "Ren\u00e9e bob\n".encode("latin1"),
            "got another encoding on line 1; if it is Latin-1, convert it with iconv",
        ),
        ("a b\n".encode("utf-16"), "must be a text file in UTF-8, got UTF-16; save it as UTF-8"),
        ("ab cd\n".encode("utf-16-le"), "must be a text file in UTF-8, got UTF-16"),
        (zipped("links.txt"), "got a zip archive; unpack it, and name the file that you need"),
        (zipped("xl/workbook.xml"), "got a spreadsheet or document; save its table as CSV"),
        (gzip.compress(b"a" * 257 + b"ustar" + bytes(250)), "got a tar archive; unpack it"),
        (b"PAR1\x00\xff", "got a Parquet file; read it with pandas"),
    ],
    # Archives hold the time at which they were made, and workers must agree on names.
    ids=lambda value: None if isinstance(value, str) and len(value) < 200 else "file",
)
def test_other_formats_are_refused_by_name(write, content, message):
    path = write(content, "links")
    for read in (networks.read, networks.read_edge_list):
        with pytest.raises(FileError, match=message if read is networks.read else None) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)


SNAP = "# Directed graph: soc.txt\n# FromNodeId\tToNodeId\n0\t4\n0\t5\n4\t0\n7\t7\n0\t5\n5\t5\n"


def test_self_loops_are_refused_with_a_remedy_or_dropped_and_told(write):
    path = write(SNAP)
    with pytest.raises(FileError, match=r'line 6: .* to leave them out, say self_loops="drop" \(--self-loops drop on'):
        networks.read(path)
    told = (
        r"soc\.txt was read as an undirected network: its comments call it directed; links in both directions, which "
        "count once: 1; lines that repeat a link: 1; self-loops that were dropped: 2$"
    )
    path = write(SNAP, "soc.txt")
    for read in (networks.read, networks.read_any):
        with pytest.warns(BanditmeshWarning, match=told):
            names, links = networks.as_links(read(path, self_loops="drop"))
        assert (list(names), links.pairs().tolist()) == ([0, 4, 5, 7], [[0, 1], [0, 2]])
    with pytest.raises(InputError, match="self_loops must be one of refuse, drop; got 'keep'"):
        networks.read(path, self_loops="keep")


@pytest.mark.filterwarnings("error")
def test_plain_list_is_read_without_a_word(write):
    assert links_of(write("# Undirected graph: each link once\n0 1\n1 2\n")) == [(0, 1), (1, 2)]


def test_every_format_can_drop_self_loops(tmp_path, write):
    graph = nx.Graph([("a", "b"), ("b", "b")])
    nx.write_gml(graph, tmp_path / "a.gml")
    nx.write_graphml(graph, tmp_path / "a.graphml")
    save_npz(tmp_path / "a.npz", csr_array([[0, 1], [1, 1]]))
    write("a b b\nb b\n", "a.adjlist")
    write(MARKET.replace("3 3 2", "3 3 3") + "3 3\n", "a.mtx")
    for name in ("a.gml", "a.graphml", "a.npz", "a.adjlist", "a.mtx"):
        with pytest.raises(FileError, match=r"self-loops, got a link from .*--self-loops drop"):
            networks.read(tmp_path / name)
        with pytest.warns(BanditmeshWarning, match="self-loops that were dropped: "):
            assert networks.as_links(networks.read(tmp_path / name, self_loops="drop"))[1].n_links in (1, 2)
    path = write("1 a a\n2 a b\n", "trace")
    assert networks.read_contact_trace(path, self_loops="drop").n_rounds == 2
    assert list(networks.read(write("5 5\n5 6\n"), self_loops="drop").edges()) == [(5, 6)]
    assert networks.read(write("5 5\n"), self_loops="drop").number_of_edges() == 0


def test_ids_that_are_written_in_two_ways_are_told(write):
    for text in ("01 1\n1 2\n", "a,1.0\n1,b\n"):
        with pytest.warns(BanditmeshWarning, match="has '(01|1.0)' and '1', which are two names; write ids in one way"):
            networks.read(write(text))


def test_data_frame_is_an_edge_list():
    frame = pd.DataFrame({"source": [1, 2], "target": [2, 3]})
    assert links_of(frame) == [(1, 2), (2, 3)]
    assert bm.Problem.random(frame, 3, 2).network.n_links == 2
    assert links_of(frame.set_index("source")) == [(1, 2), (2, 3)]
    assert links_of(pd.DataFrame([[0, 1], [1, 2]])) == [(0, 1), (1, 2)]
    frame = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "strength": [1.0, 2.0]})
    assert links_of(frame, weights="ignore") == [("a", "b"), ("b", "c")]
    trace = pd.DataFrame({"round": [1, 2], "i": ["a", "b"], "j": ["b", "c"]})
    assert networks.read_contact_trace(trace).n_rounds == 2
    for wrong, message in (
        (frame, "the DataFrame, row 2: network must be unweighted, got the weight '2.0'"),
        (frame[:0], "the DataFrame must describe a network, got no rows"),
        (frame.iloc[:, [2, 0, 1]], "the first two columns must be those of the agents, got"),
        (frame.assign(strength="x"), r"got \['b', 'c', 'x'\]; to ignore what follows the agents, say weights="),
        (
            pd.DataFrame({"a": [1.0], "b": [2]}),
            r"row 1: an agent must be named .*, got 1\.0; make the column one of integers",
        ),
        (
            nx.to_pandas_adjacency(NAMED),
            "must have two agents in a row, got an adjacency matrix; convert it with networkx",
        ),
    ):
        with pytest.raises(FileError, match=message):
            networks.read(wrong)
    with pytest.raises(FileError, match="path must name a network file, got a DataFrame"):
        networks.read_gml(frame)


@pytest.mark.parametrize("text", ["0 1\n" * 100_000, "".join(f"{2 * k},{2 * k + 1}\n" for k in range(30_000))])
def test_edge_list_takes_memory_in_proportion_to_its_bytes(write, text):
    path = write(text)
    tracemalloc.start()
    networks.read_any(path)
    assert tracemalloc.get_traced_memory()[1] < 40 * len(text)
    tracemalloc.stop()
