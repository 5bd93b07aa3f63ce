%{
// The words and signs of the constraint language (docs/rules.md).
#undef yylex  // the prefix is for Flex's own names

#include "rules/parser.h"

#include <stdexcept>

#include "rules/scanner.h"

#define YY_DECL int sublet::rules::yylex(size_t*, Span* place, Builder& builder, void* yyscanner)
#define YY_USER_ACTION *place = builder.advance(static_cast<size_t>(yyleng));
// By default it ends the process.
#define YY_FATAL_ERROR(message) throw std::runtime_error(message)

using Token = sublet::rules::Parser::token;
%}
%option reentrant noyywrap nounput noinput nodefault never-interactive nounistd 8bit
%option prefix="sublet_rules_"

%%

[ \t\r\n]+                 {}
or                         { return Token::kOr; }
and                        { return Token::kAnd; }
not                        { return Token::kNot; }
in                         { return Token::kIn; }
exist                      { return Token::kExist; }
TRUE|true                  { return Token::kTrue; }
FALSE|false                { return Token::kFalse; }
[A-Za-z_][A-Za-z0-9_.]*    { return Token::kName; }
[0-9]+                     { return Token::kInteger; }
[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+ { return Token::kReal; }
[0-9.]+[A-Za-z_][A-Za-z0-9_.]* { builder.refuse(*place, "'" + std::string(yytext) + "' is no number; numbers have no unit"); }
'([^'\\]|\\['\\])*'        { return Token::kText; }
'([^'\\]|\\['\\])*\\[^'\\] { builder.refuse({place->end - 2, place->end}, "'" + std::string(yytext + yyleng - 2) + "' cannot stand in a text; write \\\\ for a backslash, or \\' for a quote"); }
'([^'\\]|\\['\\])*\\?      { builder.refuse({place->begin, place->begin + 1}, "this text has no closing quote"); }
"=="                       { return Token::kEqual; }
"!="                       { return Token::kUnequal; }
"<="                       { return Token::kLessEqual; }
">="                       { return Token::kGreaterEqual; }
"<"                        { return Token::kLess; }
">"                        { return Token::kGreater; }
"~"                        { return Token::kContained; }
"+"                        { return Token::kPlus; }
"-"                        { return Token::kMinus; }
"*"                        { return Token::kTimes; }
"/"                        { return Token::kDivide; }
"("                        { return Token::kOpen; }
")"                        { return Token::kClose; }
"="                        { builder.refuse(*place, "'=' is no operator; write == to compare"); }
"&&"                       { builder.refuse(*place, "'&&' is no operator; write and"); }
"||"                       { builder.refuse(*place, "'||' is no operator; write or"); }
"!"                        { builder.refuse(*place, "'!' is no operator; write not"); }
"\""                       { builder.refuse(*place, "texts stand in single quotes: 'linux'"); }
[\xc2-\xf4][\x80-\xbf]+    { builder.refuse(*place, "'" + std::string(yytext) + "' cannot stand outside of a text"); }
<<EOF>>                    { *place = builder.advance(0); return 0; }
[^\n]                      { builder.refuse(*place, "'" + std::string(yytext) + "' cannot stand outside of a text"); }

%%

namespace sublet::rules {

Scanner::Scanner(std::string_view text) {
  if (sublet_rules_lex_init(&state_) != 0) throw std::bad_alloc();
  sublet_rules__scan_bytes(text.data(), static_cast<int>(text.size()), state_);
}

Scanner::~Scanner() { sublet_rules_lex_destroy(state_); }

}  // namespace sublet::rules
