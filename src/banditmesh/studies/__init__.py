"""Studies: any sweep, from a spec to a folder of results and to pictures.

spec, reading           what a study is; a TOML file read and checked
grid                    the points of a sweep
stages                  how a study grows
settings_checks         what is checked before anything runs
template                the spec that `banditmesh new` prints
case                    a spec that describes one problem
runner, worker          the parent that cuts a study into chunks, and what computes one
store, manifest, shards   a study on disk
lines, pictures         which runs make a line, and what is drawn of a study
summary, report         a row for each point; one HTML file with all of it
"""
