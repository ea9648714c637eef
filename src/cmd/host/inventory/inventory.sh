# What this host has, for `stado host inventory`. It reads and changes nothing. Each line is a word and values; a value that
# somebody else chose is written in hex after an x, so that nothing it holds can pass for a line of this answer.
LC_ALL=C; export LC_ALL

hex() { od -An -v -tx1 | tr -d ' \n'; }
value() { printf ' x'; printf '%s' "$1" | hex; }
fact() { printf '%s' "$1"; shift; for one in "$@"; do value "$one"; done; echo; }

# A program that does not answer is ended after five seconds.
limited() {
    ( "$@" </dev/null 2>/dev/null & asked=$!
      ( sleep 5; kill -9 "$asked" ) >/dev/null 2>&1 & clock=$!
      wait "$asked"; kill "$clock" ) 2>/dev/null
}

forwards() {
    dir=${STADO_FORWARDS_DIR:-$HOME/.stado/forwards}
    if [ -L "$dir" ]; then state=symlink
    elif [ -d "$dir" ]; then state=directory
    elif [ -e "$dir" ]; then state=not_directory
    else state=missing
    fi
    fact forwards_dir "$state" "$dir"
    [ "$state" = directory ] || return 0
    count=0
    for file in "$dir"/*.local "$dir"/*.url; do
        [ -e "$file" ] || [ -L "$file" ] || continue
        count=$((count + 1))
        if [ "$count" -gt 1000 ]; then echo more_forwards; return 0; fi
        if [ -L "$file" ]; then state=refused_symlink
        elif [ ! -f "$file" ]; then state=refused_not_regular
        elif [ ! -r "$file" ]; then state=refused_unreadable
        else state=read
        fi
        printf 'forward'; value "${file##*/}"; printf ' %s x' "$state"
        [ "$state" != read ] || head -c 4096 "$file" | hex
        echo
    done
}

# Listening sockets, and which process holds each as far as this account may see.
listeners() {
    if [ -r /proc/net/tcp ]; then
        echo listeners_from proc
        { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A" { print "listen", $2, $10 }'
          ls -l /proc/[0-9]*/fd 2>/dev/null
        } | awk '
            $1 == "listen" { print; wanted[$3] = 1; next }
            /^\/proc\/[0-9]+\/fd:/ { split($1, part, "/"); pid = part[3]; next }
            $NF ~ /^socket:\[[0-9]+\]$/ { i = $NF; gsub(/[^0-9]/, "", i); if (i in wanted) print "owner", i, pid }'
    elif command -v lsof >/dev/null 2>&1; then
        echo listeners_from lsof
        lsof -nP -iTCP -sTCP:LISTEN -Fpn 2>/dev/null | sed 's/^/lsof /'
    else
        echo listeners_from nothing
    fi
}

# A program by its name, at its declared path or wherever this account finds it.
binary() {
    path=$2
    [ -n "$path" ] || path=$(
        PATH=$PATH:$HOME/.stado/bin:$HOME/.local/bin:$HOME/bin:/usr/local/bin:/opt/homebrew/bin
        command -v "$1" </dev/null 2>/dev/null)
    version=
    case $path in
        /*) [ ! -x "$path" ] || [ -d "$path" ] || version=$(limited "$path" --version | head -n 1 | head -c 400) ;;
        *) path= ;;
    esac
    fact binary "$1" "$path" "$version"
    [ "$1" = stado ] && [ -n "$version" ] || return 0
    printf 'help x'; limited "$path" --help | head -c 16384 | hex; echo
}

vaults() {
    for file in "$HOME"/.stado/vault*; do
        [ -e "$file" ] || [ -L "$file" ] || continue
        size=
        if [ -L "$file" ]; then state=symlink
        elif [ -d "$file" ]; then state=directory
        elif [ -f "$file" ]; then state=file; size=$(wc -c <"$file" 2>/dev/null | tr -d ' ')
        else state=other
        fi
        fact vault "$file" "$state" "$size"
    done
}

resolver_state() {
    file=${STADO_RESOLVER_STATE_FILE:-$HOME/.stado/resolver-state.json}
    if [ -f "$file" ] && [ -r "$file" ]; then
        printf 'resolver_state'; value "$file"; printf ' x'; head -c 262144 "$file" | hex; echo
    else
        printf 'resolver_state'; value "$file"; echo
        if [ -e "$file" ] || [ -L "$file" ]; then fact resolver_state_unread "$file"; fi
    fi
    # A probe that is given back at once. Where nothing can probe, nothing is said.
    lock=$(dirname "$file")/resolver-state.lock
    if [ -f "$lock" ] && [ -r "$lock" ] && command -v flock >/dev/null 2>&1; then
        if flock -n -s "$lock" true 2>/dev/null; then fact resolver_runs no; else fact resolver_runs yes; fi
    fi
}
