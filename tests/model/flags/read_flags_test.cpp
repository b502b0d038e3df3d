// The text of XLA_FLAGS as the parser of jaxlib 0.12.0.1 took it apart when it was asked.
#include "model/flags/read_flags.h"

#include <doctest/doctest.h>

#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

/// "name=value" or "name", a blank between; "| rest" for what is not read.
std::string shown(const FlagText& text) {
  std::string out;
  for (const FlagUse& use : text.uses)
    out += (out.empty() ? "" : " ") + use.name + (use.value ? "=" + *use.value : "");
  return text.unread.empty() ? out : out + " | " + text.unread;
}

TEST_CASE("flags are read as XLA reads them") {
  struct Row {
    const char* name;
    const char* text;
    const char* expected;
  };
  const Row rows[] = {
      {"nothing", "", ""},
      {"blanks", " \t\n", ""},
      {"one", "--xla_a=true", "xla_a=true"},
      {"without a value", "--xla_a --xla_b=1", "xla_a xla_b=1"},
      {"any blanks", "\n--xla_a=1\t--xla_b=2\r\n --xla_c ", "xla_a=1 xla_b=2 xla_c"},
      {"an empty value", "--xla_a= --xla_b", "xla_a= xla_b"},
      {"a value with '='", "--xla_a=x=1,y=2", "xla_a=x=1,y=2"},
      {"blanks in single quotes", "--xla_a='1 2' --xla_b", "xla_a=1 2 xla_b"},
      {"a backslash in double quotes", R"(--xla_a="1 \"2" --xla_b)", "xla_a=1 \"2 xla_b"},
      {"and in single ones", R"(--xla_a='1 \2')", "xla_a=1 \\2"},
      {"quotes that do not end", "--xla_a='1 --xla_b", "xla_a=1 --xla_b"},
      {"quotes that are empty", "--xla_a='' --xla_b", "xla_a= xla_b"},
      {"quotes inside a value", "--xla_a=1'2 3'", "xla_a=1'2 | 3'"},
      {"one dash", "-xla_a=1 --xla_b", "-xla_a=1 xla_b"},
      {"a dash for '='", "--xla_a-false", "xla_a-false"},
      {"a backslash between", "--xla_a=1 \\\n --xla_b=2", "xla_a=1 | \\\n --xla_b=2"},
      {"blanks around '='", "--xla_a = 1 --xla_b=2", "xla_a | = 1 --xla_b=2"},
      {"no dash", "xla_a=1", " | xla_a=1"},
      {"a semicolon", "--xla_a=true;--xla_b", "xla_a=true;--xla_b"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(shown(read_flags(row.text)) == row.expected);
  }
}

TEST_CASE("words are kept as they were written") {
  const FlagText text = read_flags("--xla_a='1 2' -b");
  REQUIRE(text.uses.size() == 2);
  CHECK(text.uses[0].word == "--xla_a='1 2'");
  CHECK(text.uses[1].word == "-b");
}

TEST_CASE("text without a dash in front is a file of flags") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("flags.txt", "--xla_a=1\n--xla_b=2\n");
  CHECK(shown(*read_flags_or_file(path)) == "xla_a=1 xla_b=2");
  CHECK(shown(*read_flags_or_file("  --xla_a")) == "xla_a");
  CHECK(shown(*read_flags_or_file("")) == "");
  const auto missing = read_flags_or_file("xla_gpu_autotune_level=0");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().kind == ErrorKind::kUsage);
  CHECK(to_text(missing.error()) ==
        "error: XLA would take 'xla_gpu_autotune_level=0' for a file of flags, and there is none\n"
        "  flags begin with two dashes: --xla_dump_to=DIR");
}

}  // namespace
}  // namespace spillway
