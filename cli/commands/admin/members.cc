// admin invite, admin revoke, admin members and join: the pool's remote members.
#include "cli/pool/members.h"

#include "base/files.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"
#include "transport/membership_file.h"

namespace sublet::cli {

namespace {

constexpr int kJoinTimeoutMs = 20'000;

std::string home_folder() {
  const char* home = getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw PoolError(ErrorKind::usage, "usage.home", "$HOME is not set",
                    "set it: memberships are kept in ~/.config/sublet", "HOME");
  return std::string(home) + "/.config/sublet";
}

struct InviteOptions {
  std::string name;
  bool user = false;
  bool administrator = false;
  std::string valid = "1 d";
};

int run_invite(const InviteOptions& o, Context& context) {
  const auto valid = parse_duration_ms(o.valid);
  if (!valid || *valid < 1000)
    throw PoolError(ErrorKind::usage, "usage.valid",
                    "--valid: '" + o.valid + "' is not a duration of a second or more",
                    "write it as \"1 d\" or \"30 min\"", o.valid);
  if (o.user && o.administrator)
    throw PoolError(ErrorKind::usage, "usage.role",
                    "give either --user or --administrator, not both",
                    "an administrator may do everything a user may", o.name);
  const Role role = o.user ? Role::kUser : o.administrator ? Role::kAdministrator : Role::kMachine;
  const Invitation made = context.pool().invite(random_id(), o.name, role, *valid);
  if (context.json) {
    JsonWriter json;
    json.begin_object();
    json.field("token", made.token).field("name", o.name).field("role", to_text(role));
    json.field("expires_us", made.expires_us);
    json.end_object();
    print(json.str() + "\n");
    return 0;
  }
  print(made.token + "\n");
  say("valid once, until " + format_instant(made.expires_us) + "; on the other machine run: " +
      (role == Role::kMachine ? "sublet-client" : "sublet") + " join TOKEN");
  return 0;
}

int run_revoke(const std::string& name, Context& context) {
  context.pool().revoke(random_id(), name);
  if (!context.json) {
    print(escape_for_terminal(name) + " is no longer a member\n");
    return 0;
  }
  JsonWriter json;
  json.begin_object().field("revoked", name).end_object();
  print(json.str() + "\n");
  return 0;
}

std::string standing_of(const MemberInfo& member, int64_t now) {
  if (member.revoked_us != 0) return "revoked " + format_instant(member.revoked_us);
  return member.expires_us <= now ? "expired" : "member";
}

void write_member(JsonWriter& json, const MemberInfo& member) {
  const auto role = role_from(member.role);
  json.begin_object();
  json.field("name", member.name);
  json.field("role", role ? std::string(to_text(*role)) : std::to_string(member.role));
  json.field("joined_us", member.joined_us).field("expires_us", member.expires_us);
  json.field("revoked_us", member.revoked_us).field("invited_by", member.invited_by);
  json.end_object();
}

int run_members(Context& context) {
  std::vector<MemberInfo> members;
  std::string cursor;
  do {
    MemberPage page = context.pool().members(cursor, kPageLimit);
    members.insert(members.end(), page.members.begin(), page.members.end());
    cursor = page.next;
  } while (!cursor.empty());
  if (context.json) {
    JsonWriter json;
    json.begin_object().key("members").begin_array();
    for (const auto& member : members) write_member(json, member);
    json.end_array().end_object();
    print(json.str() + "\n");
    return 0;
  }
  if (members.empty()) {
    say("nobody has joined this pool from another host; invite them with `sublet admin invite`");
    return 0;
  }
  const int64_t now = now_us();
  std::vector<Row> rows;
  for (const auto& member : members) {
    const auto role = role_from(member.role);
    rows.push_back({{member.name, role ? to_text(*role) : std::to_string(member.role),
                     standing_of(member, now), format_instant(member.joined_us),
                     format_instant(member.expires_us), member.invited_by},
                    member.revoked_us != 0 ? Colour::dim : Colour::none});
  }
  print(list_table({{"NAME", false, 6, 9},
                    {"ROLE", false, 7, 8},
                    {"STANDING", false, 7, 7},
                    {"JOINED", false, 20, 3},
                    {"CERTIFICATE UNTIL", false, 20, 5},
                    {"INVITED BY", false, 6, 2}},
                   rows, context.terminal.columns, context.terminal.colour));
  return 0;
}

// The server of the first pool joined becomes the default. If this fails, nothing is
// lost: the membership is on disk.
bool set_default_server(const std::string& folder, const std::string& server) {
  const std::string path = folder + "/config.toml";
  try {
    if (system_files().exists(path)) return false;
    system_files().write_atomic(path, "server = \"" + server + "\"\n", 0600);
    return true;
  } catch (const FileError& e) {
    say("sublet: this server could not be stored as the default: " + escape_for_terminal(e.what()));
    return false;
  }
}

void tell_joined(const MemberName& member, const std::string& server, bool is_default,
                 const Context& context) {
  if (context.json) {
    JsonWriter json;
    json.begin_object().field("name", member.name).field("pool", member.pool);
    json.field("server", server).field("is_default", is_default).end_object();
    print(json.str() + "\n");
    return;
  }
  print("you are " + member.name + " in the pool '" + member.pool + "' at " + server + "\n" +
        (is_default ? "it is your default server now (~/.config/sublet/config.toml)\n"
                    : "use it with --server " + server + "\n"));
}

int run_join(const std::string& text, Context& context) {
  const auto token = join_token_from(text);
  if (!token)
    throw PoolError(ErrorKind::usage, "usage.token", "this is not a join token",
                    "an administrator creates one with `sublet admin invite NAME --user`", "token");
  if (token->role == Role::kMachine)
    throw PoolError(ErrorKind::usage, "usage.token", "this token is for a machine, not for a user",
                    "use it with `sublet-client join`", "token");
  const std::string server = kTlsScheme + to_text(token->server);
  const std::string folder = home_folder();
  try {
    const std::string path = membership_path(server);
    system_files().make_folders(folder_of(path), 0700);
    const Membership made = join_and_keep(system_files(), path, *token, kJoinTimeoutMs);
    const auto member = read_certificate(made.credentials.certificate).member;
    const bool preset = set_default_server(folder, server);
    tell_joined(member.value(), server, preset, context);
    return 0;
  } catch (const FileError& e) {
    throw PoolError(ErrorKind::unavailable, "membership.file",
                    std::string("the membership cannot be stored: ") + e.what(),
                    "make " + folder +
                        " writable, or set $HOME to a folder that is, and use the "
                        "same token again there",
                    e.path());
  } catch (const DialError& e) {
    const bool unreached = e.code().starts_with("server.");
    throw PoolError(unreached ? ErrorKind::unavailable : ErrorKind::not_permitted, e.code(),
                    e.what(), e.advice(), server);
  } catch (const TlsError& e) {
    throw PoolError(ErrorKind::unavailable, "membership.file", e.what(), "", server);
  }
}

}  // namespace

std::string membership_path(const std::string& server) {
  const std::string at = server.substr(std::string(kTlsScheme).size());
  return home_folder() + "/pools/" + percent_encode(at);
}

std::optional<Membership> membership_at(const std::string& server) {
  if (!server.starts_with(kTlsScheme)) return std::nullopt;
  const auto at = host_port_from(server.substr(std::string(kTlsScheme).size()));
  if (!at)
    throw PoolError(ErrorKind::usage, "server.address", "'" + server + "' is not an address",
                    "write it as tls://HOST:PORT", server);
  std::optional<Membership> membership;
  try {
    membership = read_membership(system_files(), membership_path(server));
  } catch (const TlsError& e) {
    throw PoolError(ErrorKind::invalid, "membership.file", e.what(), "", server);
  }
  if (!membership)
    throw PoolError(ErrorKind::not_permitted, "membership.none",
                    "you are not a member of the pool at " + server,
                    "ask its administrator for a token, then run `sublet join TOKEN`", server);
  return membership;
}

Command invite_command(Arguments& admin) {
  auto o = std::make_shared<InviteOptions>();
  Arguments& a = admin.command("invite", "Print a token with which a new member may join, once");
  a.positional("NAME", &o->name, "the new member's name in the pool", true);
  a.flag("--user", &o->user, "invite a user who submits jobs (default: a machine)");
  a.flag("--administrator", &o->administrator, "invite an administrator");
  a.option("--valid", &o->valid, "how long the token is valid (\"1 d\")", "TIME");
  return {&a, [o](Context& context) { return run_invite(*o, context); }};
}

Command revoke_command(Arguments& admin) {
  auto name = std::make_shared<std::string>();
  Arguments& a = admin.command("revoke", "End a membership at once, and void its open invitations");
  a.positional("NAME", name.get(), "of the member", true);
  return {&a, [name](Context& context) { return run_revoke(*name, context); }};
}

Command members_command(Arguments& admin) {
  Arguments& a = admin.command("members", "List who has, or had, a certificate of this pool");
  return {&a, run_members};
}

Command join_command(Arguments& top) {
  auto token = std::make_shared<std::string>();
  Arguments& a = top.command("join", "Become a member of a remote pool, with a token");
  a.positional("TOKEN", token.get(), "token from the pool's administrator", true);
  return {&a, [token](Context& context) { return run_join(*token, context); }};
}

}  // namespace sublet::cli
