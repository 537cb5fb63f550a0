import gzip

import networkx as nx
import pytest
from scipy.sparse import csr_array, save_npz

from banditmesh import networks
from banditmesh.draws import Draws
from banditmesh.errors import FileError, InputError


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
        ("a.gml", "graph [\n  node [ id 0 ]\n  ?\n]\n", "line 3: not valid GML"),
        ("a.gml", "graph [\n  node [ id 0 ]\n", "not valid GML"),
        ("a.gml", "graph [ ]\n", "network must have at least one agent"),
        ("a.gml", "nothing\n", "must be a GML network|not valid GML"),
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
        ("ring:a", "takes numbers, got 'a'"),
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
