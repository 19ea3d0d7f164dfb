_weir() {
    # For bash, words also end at `@`, `:` and `=`, which names of contracts and peers have: join the pieces again.
    local words=() rest=$COMP_LINE at=0 i piece
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        if ((i == 0)) || [[ $rest == [[:blank:]]* ]]; then
            words+=("$piece")
        else
            words[at]+=$piece
        fi
        at=$((${#words[@]} - 1))
        rest=${rest#"${rest%%[![:blank:]]*}"}
        rest=${rest#"$piece"}
    done
    # Only what stands before the cursor.
    if [[ $piece != [@:=]* && $piece == "$2"* ]]; then
        words[at]=${words[at]%"$piece"}$2
    fi
    local quote= word=${words[at]}
    if [[ $word == [\"\']* ]]; then
        quote=${word:0:1} word=${word:1}
        words[at]=$word
    fi
    # Bash replaces only the last piece.
    local prefix=${word%"$2"} reply
    IFS=$'\v' read -r -d '' -a COMPREPLY < <(
        _CLAP_IFS=$'\v' _CLAP_COMPLETE_INDEX=$at COMPLETE=bash 'weir' -- "${words[@]}" 2> /dev/null
        printf '\0'
    )
    for i in "${!COMPREPLY[@]}"; do
        reply=${COMPREPLY[i]}
        if [[ -z $quote$prefix && $reply == *[!A-Za-z0-9_@%+=:,./~-]* ]]; then
            reply=${reply@Q}
        fi
        COMPREPLY[i]=${reply#"$prefix"}
    done
    if [[ ${COMPREPLY-} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _weir weir
