#include "sim/planner/policy_choices.h"

#include <doctest/doctest.h>

#include "tests/sim/planner/example.h"

namespace spillway {
namespace {

using testing::value_or_fail;

Handle handle(const std::string& name, const std::vector<std::string>& aliases = {}) {
  Handle result;
  result.name = name;
  result.aliases = aliases;
  return result;
}

NameList sidecar(const std::vector<std::string>& names) {
  NameList list;
  for (const std::string& name : names) {
    CheckpointName one;
    one.name = name;
    list.names.push_back(one);
  }
  return list;
}

std::vector<NameChoice> wishes(const std::vector<std::string>& texts) {
  std::vector<NameChoice> list;
  for (const std::string& text : texts) list.push_back(value_or_fail(parse_name_choice(text)));
  return list;
}

/// "kor": a letter a handle.
std::string letters(const Policy& policy) {
  std::string text;
  for (const Choice choice : policy) text += name_of(choice)[0];
  return text;
}

std::string first_lines(const Error& error) { return error.text + " | " + error.advice; }

TEST_CASE("what --set says") {
  CHECK(value_or_fail(parse_name_choice("q=keep,offload,recompute")).choices ==
        std::vector{Choice::kKeep, Choice::kOffload, Choice::kRecompute});
  struct Row {
    const char* text;
    std::string message;
  };
  const Row rows[] = {
      {"", "--set '' is not NAME=CHOICE | for example --set query_proj=offload"},
      {"q", "--set 'q' is not NAME=CHOICE | for example --set query_proj=offload"},
      {"=keep", "--set '=keep' is not NAME=CHOICE | for example --set query_proj=offload"},
      {"q=", "--set q: '' is no choice | keep, offload or recompute"},
      {"q=keep,", "--set q: '' is no choice | keep, offload or recompute"},
      {"q=Keep", "--set q: 'Keep' is no choice | keep, offload or recompute"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto result = parse_name_choice(row.text);
    REQUIRE(!result.ok());
    CHECK(first_lines(result.error()) == row.message);
  }
}

TEST_CASE("every combination, the first name slowest") {
  const std::vector<Handle> handles = {handle("a"), handle("b"), handle("c")};
  const PolicyCases cases = value_or_fail(
      combine(wishes({"c=keep,offload", "a=recompute,keep"}), handles, NameList(), 100));
  std::string text;
  for (const Policy& policy : cases.policies) text += letters(policy) + " ";
  CHECK(text == "rkk kkk rko kko ");
  CHECK(cases.findings.empty());
  CHECK(!combine(wishes({"c=keep,offload", "a=recompute,keep"}), handles, NameList(), 3).ok());
}

TEST_CASE("names that share a value, cannot be moved, or are not there") {
  std::vector<Handle> handles = {handle("q", {"q2"}), handle("fixed"), handle("input")};
  handles[1].fixed_because = "XLA copies it";
  handles[2].saved_because = "it is the layer's input";
  const NameList names = sidecar({"q", "q2", "fixed", "input", "unsaved"});
  struct Row {
    std::vector<std::string> sets;
    std::string policy;
    std::string finding;  ///< its code, empty for none
  };
  const Row rows[] = {
      {{"q=recompute", "q2=recompute"}, "rkk", ""},
      {{"q=recompute"}, "kkk", "saved-by-another-name"},
      {{"q=recompute", "q2=offload"}, "okk", ""},
      {{"q=keep", "q2=offload"}, "kkk", "names-disagree"},
      {{"fixed=offload"}, "kkk", "stays-as-compiled"},
      {{"fixed=recompute"}, "krk", ""},
      {{"input=recompute"}, "kkk", "stays-as-compiled"},
      {{"input=offload"}, "kko", ""},
      {{"unsaved=recompute"}, "kkk", "name-without-effect"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.sets.front());
    const PolicyCases cases = value_or_fail(combine(wishes(row.sets), handles, names, 100));
    REQUIRE(cases.policies.size() == 1);
    CHECK(letters(cases.policies[0]) == row.policy);
    CHECK((cases.findings.empty() ? "" : cases.findings[0].code) == row.finding);
  }
  const auto unknown = combine(wishes({"z=keep"}), handles, names, 100);
  REQUIRE(!unknown.ok());
  CHECK(first_lines(unknown.error()) ==
        "no name 'z' in this program | it has q, q2, fixed, input, unsaved");
  const auto twice = combine(wishes({"q=keep", "q=offload"}), handles, names, 100);
  REQUIRE(!twice.ok());
  CHECK(twice.error().text == "--set q stands there twice");
}

TEST_CASE("why a name changes nothing is said") {
  struct Row {
    std::vector<Handle> handles;
    std::vector<std::string> wishes;
    std::string code, what;
  };
  const Row rows[] = {
      {{handle("a")},
       {"b=offload"},
       "name-without-effect",
       "b changes nothing: the program saves no value of that name"},
      {{handle("a"), handle("b@0-3")},
       {"b@0-3=offload", "b=keep"},
       "name-without-effect",
       "b changes nothing: other --set have all of its layers, with @"},
      // Once, however many names.
      {{handle("r0"), handle("r1")},
       {"a=offload", "b=offload"},
       "foreign-names",
       "no name of the sidecar fits a residual of this program: it is another program's, or what "
       "it names is not saved"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const PolicyCases cases =
        value_or_fail(combine(wishes(row.wishes), row.handles, sidecar({"a", "b"}), 10));
    REQUIRE(cases.findings.size() == 1);
    CHECK(cases.findings.front().code == row.code);
    CHECK(cases.findings.front().what == row.what);
  }
  // What is set has an effect, whoever's the sidecar is.
  CHECK(value_or_fail(combine(wishes({"r0=offload"}), {handle("r0")}, sidecar({"a"}), 10))
            .findings.empty());
}

TEST_CASE("layers behind a name") {
  const NameChoice some = value_or_fail(parse_name_choice("q@2-4=keep,offload"));
  CHECK(some.name == "q@2-4");
  REQUIRE(some.group);
  CHECK(some.group->name == "q");
  CHECK(some.group->layers == std::vector<std::uint32_t>{2, 3, 4});
  CHECK(value_or_fail(parse_name_choice("q@03=keep")).name == "q@3");
  for (const char* text : {"q@=keep", "@3=keep", "q@x=keep", "q@3-1=keep", "q@-1=keep", "q@1-=keep",
                           "q@1-2-3=keep", "q@9999999999=keep", "q@100000=keep"}) {
    CAPTURE(text);
    const auto choice = parse_name_choice(text);
    REQUIRE_FALSE(choice.ok());
    CHECK(choice.error().advice ==
          "for example --set query_proj@3=offload or query_proj@0-15=offload");
  }

  UnrolledTable table;
  table.layers.resize(4);
  table.residuals.push(UnrolledResidual());
  const auto said = [&](const std::vector<std::string>& texts, const UnrolledTable& of) {
    Handle q = handle("q");
    q.unrolled = {UnrolledId(0)};
    std::vector<Handle> handles = {q, handle("k")};
    const auto asked = wishes(texts);
    for (const LayerGroup& group : groups_of(asked)) split_layers(handles, of, group);
    const auto wrong = check_layers(asked, handles, of);
    return wrong ? first_lines(*wrong) : "";
  };
  CHECK(said({"q@3=keep", "q@0-1=offload", "q=recompute"}, table) == "");
  CHECK(said({"q@4=keep"}, table) == "--set q@4: the layers are 0 to 3 | ");
  CHECK(said({"q@0-1=keep", "q@1=offload"}, table) ==
        "--set q@1: another --set has some of these layers | give each layer once");
  CHECK(said({"q@0=keep"}, {}) ==
        "--set q@0: this program's layers are scanned, and a name has one choice for all of them | "
        "without the @; plan says what a split scan would bring");
  CHECK(said({"nobody@0=keep"}, table) == "");  // `combine` refuses it
}

}  // namespace
}  // namespace spillway
