# The component in a real Main. `weir test` starts it, and says where the command is. Prints TAP.

test -n "$WEIR" || exit 0
failed=0

check() {
    if test "$3" = "$4"; then echo "ok $1 - $2"; else echo "not ok $1 - $2"; echo "# $3"; failed=1; fi
}

check 3 "the running component greets by name" "$("$WEIR" call {{name}}@1 greet '{"name":"Grace"}')" '"hello, Grace"'
check 4 "a greeting needs a name" "$("$WEIR" call {{name}}@1 greet '{"name":""}' 2>&1)" "error: nobody: nobody"
exit $failed
