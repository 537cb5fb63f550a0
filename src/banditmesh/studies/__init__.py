"""Studies: any sweep, from a spec to a folder of results and to pictures.

spec, reading           what a study is; a TOML file read and checked
grid                    the points of a sweep
stages                  how a study grows
parts, fault_tables     what the tables of a spec may name, and how each is built
line_numbers            where in a file a key stands
template                the spec that `banditmesh new` prints
case                    a spec that describes one problem
runner, worker          the parent that cuts a study into chunks, and what computes one
store, manifest, shards a study on disk
pictures                what is drawn of a study
"""
