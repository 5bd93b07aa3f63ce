#include "cli/commands/completion.h"

namespace sublet::cli {

namespace {

// bash and zsh share two functions, which describe what may follow the command $where
// (for example "sublet admin"):
//   _sublet_command        sets verbs (its commands), flags (its options), kind (of
//                          its other arguments) and rest (takes words after "--")
//   _sublet_value OPTION   sets kind: "" for an option without a value
// Each shell has its own loop over the words before the cursor.
constexpr const char* kBashWalk = R"(
_sublet_offer() {
  case $kind in
    words\ *) mapfile -t COMPREPLY < <(compgen -W "${kind#words }" -- "$cur") ;;
    files) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    folders) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    programs) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
  esac
  case $kind in files | folders) compopt -o filenames 2>/dev/null ;; esac
}

_sublet() {
  local IFS=$' \t\n' cur=${COMP_WORDS[COMP_CWORD]} where=sublet
  local option='' kind='' rest='' verbs='' flags='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $option ]]; then
      [[ $word == = ]] || option=''  # bash makes a word of it
    elif [[ $word == -- ]]; then
      _sublet_command
      [[ $rest ]] || return
      kind=files
      ((i + 1 < COMP_CWORD)) || kind=programs
      _sublet_offer
      return
    elif [[ $word == -* ]]; then
      _sublet_value "$word"
      [[ $kind ]] && option=$word
    else
      _sublet_command
      [[ " $verbs " == *" $word "* ]] && where+=" $word"
    fi
  done
  if [[ $option ]]; then
    [[ $cur == = ]] && cur=''
    _sublet_value "$option"
  else
    _sublet_command
    if [[ $cur == -* ]]; then
      kind="words $flags"
    elif [[ $verbs ]]; then
      kind="words $verbs"
    fi
  fi
  _sublet_offer
}
complete -F _sublet sublet
)";

constexpr const char* kZshWalk = R"(
_sublet() {
  local cur=$words[CURRENT] where=sublet
  local option='' kind='' rest='' verbs='' flags='' word i
  for ((i = 2; i < CURRENT; ++i)); do
    word=$words[i]
    if [[ -n $option ]]; then
      option=''
    elif [[ $word == -- ]]; then
      _sublet_command
      [[ -n $rest ]] || return 1
      if ((i + 1 < CURRENT)); then _files; else _command_names -e; fi
      return
    elif [[ $word == -* ]]; then
      _sublet_value "$word"
      [[ -n $kind ]] && option=$word
    else
      _sublet_command
      [[ " $verbs " == *" $word "* ]] && where+=" $word"
    fi
  done
  if [[ -n $option ]]; then
    _sublet_value "$option"
  elif [[ $cur == -*=* ]]; then
    _sublet_value "${cur%%=*}"
    compset -P '*='
  else
    _sublet_command
    if [[ $cur == -* ]]; then
      kind="words $flags"
    elif [[ -n $verbs ]]; then
      kind="words $verbs"
    fi
  fi
  case $kind in
    words\ *) compadd -- ${=kind#words } ;;
    files) _files ;;
    folders) _files -/ ;;
  esac
}
# Loaded by its name it is asked at once; sourced it makes itself known.
if [[ $funcstack[1] == _sublet ]]; then _sublet; else compdef _sublet sublet; fi
)";

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// A case for each command. `flags`: the options of the commands above it.
void put_commands(std::string& out, const ArgumentTable& table, std::vector<std::string> flags) {
  for (const ArgumentOption& option : table.options)
    flags.insert(flags.end(), option.names.begin(), option.names.end());
  std::vector<std::string> verbs;
  for (const ArgumentTable& command : table.commands) verbs.push_back(command.name);
  std::string kind;
  if (!table.positionals.empty())
    kind = kind_of_value(table.positionals.front().name, table.positionals.front().words);
  out += "    '" + table.path + "')\n      verbs='" + joined(verbs) + "' kind='" + kind +
         "' rest='" + table.passthrough + "'\n      flags='" + joined(flags) + "' ;;\n";
  for (const ArgumentTable& command : table.commands) put_commands(out, command, flags);
}

// A case for each option that takes a value. It also applies to the subcommands, whose
// own options come first.
void put_values(std::string& out, const ArgumentTable& table) {
  for (const ArgumentTable& command : table.commands) put_values(out, command);
  for (const ArgumentOption& option : table.options) {
    if (option.value_name.empty()) continue;
    for (const std::string& name : option.names) {
      out += "    '" + table.path + ":" + name + "'";
      if (!table.commands.empty()) out += " | '" + table.path + " '*':" + name + "'";
      out += ") kind='" + kind_of_value(option.value_name, option.words) + "' ;;\n";
    }
  }
}

std::string tables(const ArgumentTable& program) {
  std::string out = "_sublet_command() {\n  case $where in\n";
  put_commands(out, program, {});
  out += "  esac\n}\n\n_sublet_value() {\n  kind=''\n  case $where:$1 in\n";
  put_values(out, program);
  return out + "  esac\n}\n";
}

}  // namespace

std::string kind_of_value(const std::string& name, const std::vector<std::string>& words) {
  if (!words.empty()) return "words " + joined(words);
  if (name.starts_with("FOLDER")) return "folders";
  if (name.starts_with("FILE") || name == "PATH") return "files";
  return "text";
}

std::string bash_completion(const ArgumentTable& program) {
  return "# Made by `sublet completion bash`.\n" + tables(program) + kBashWalk;
}

std::string zsh_completion(const ArgumentTable& program) {
  return "#compdef sublet\n# Made by `sublet completion zsh`.\n" + tables(program) + kZshWalk;
}

}  // namespace sublet::cli
