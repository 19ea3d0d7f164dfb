complete --keep-order --exclusive --command weir --arguments "(COMPLETE=fish weir -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
