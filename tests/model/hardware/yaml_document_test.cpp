#include "model/hardware/yaml_document.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/golden.h"

namespace spillway {
namespace {

std::string problem(std::string text) {
  const Result<YamlDocument> document = parse_yaml(std::move(text), "x.yaml");
  return document ? "read" : to_text(document.error());
}

TEST_CASE("a document is a tree that knows its places") {
  const Result<YamlDocument> document =
      parse_yaml("a: 1\nb: {c: \"two words\", d: [x, y]}\ne:\n", "x.yaml");
  REQUIRE(document.ok());
  const YamlNode& root = document->root;
  REQUIRE(root.entries.size() == 3);
  CHECK(root.entries[0].key == "a");
  CHECK(root.entries[0].value.scalar == "1");
  CHECK(root.entries[0].value.at == TextPosition{1, 4});
  const YamlNode& b = root.entries[1].value;
  CHECK(b.entries[0].key_at == TextPosition{2, 5});
  CHECK(b.entries[0].value.scalar == "two words");
  REQUIRE(b.entries[1].value.items.size() == 2);
  CHECK(b.entries[1].value.items[1].scalar == "y");
  CHECK(root.entries[2].value.kind == YamlNode::Kind::kNull);
}

TEST_CASE("keys given twice are kept for the reader to complain about") {
  const Result<YamlDocument> document = parse_yaml("a: 1\na: 2\n", "x.yaml");
  REQUIRE(document.ok());
  REQUIRE(document->root.entries.size() == 2);
  CHECK(document->root.entries[1].value.scalar == "2");
}

TEST_CASE("what YAML allows and we do not") {
  CHECK(problem("a: &x 1\n") ==
        "x.yaml:1:4: error: anchors and aliases are not allowed\n"
        "   1 | a: &x 1\n"
        "     |    ^ write the value out");
  CHECK(problem("a: 1\nb: *x\n").starts_with("x.yaml:2:4: error: "));
  CHECK(problem("a: !!float 1\n") ==
        "x.yaml:1:4: error: the tag 'tag:yaml.org,2002:float' is not allowed\n"
        "   1 | a: !!float 1\n"
        "     |    ^ write the value without it");
  CHECK(problem("a: 1\n---\nb: 2\n") ==
        "x.yaml: error: holds more than one YAML document\n  remove the '---'");
  CHECK(problem("? {a: b}\n: c\n") ==
        "x.yaml:1:3: error: a key must be a plain name\n"
        "   1 | ? {a: b}\n"
        "     |   ^");
  CHECK(problem("a: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n") ==
        "x.yaml:1:19: error: is nested too deep\n"
        "   1 | a: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n"
        "     |                   ^ 16 levels are enough for anything read here");
}

TEST_CASE("what is no YAML") {
  CHECK(problem("") == "x.yaml: error: is empty");
  CHECK(problem("# only a comment\n") == "x.yaml: error: is empty");
  CHECK(problem(std::string("a: \0 b", 6)) ==
        "x.yaml: error: is not text\n  a YAML file in UTF-8 is expected");
  CHECK(problem("a: \xff\xfe\n") ==
        "x.yaml: error: is not text\n  a YAML file in UTF-8 is expected");
  CHECK(problem("a: [1\n") ==
        "x.yaml:2:1: error: is not valid YAML: end of sequence flow not found");
  CHECK(problem("a: b: c\n") ==
        "x.yaml:1:5: error: is not valid YAML: illegal map value\n"
        "   1 | a: b: c\n"
        "     |     ^");
  CHECK(problem("a: " + std::string(100'000, '[')) ==
        "x.yaml:1:5: error: a key must be a plain name");  // yaml-cpp looks for "[...]: value"
}

TEST_CASE("a bomb does not go off") {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [*" + before + ",*" + before + ",*" + before + "]\n";
  }
  CHECK(problem(bomb).starts_with("x.yaml:1:4: error: anchors and aliases are not allowed"));
}

TEST_CASE("files that are not what they should be") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / "spillway_yaml_document_test").string();
  std::filesystem::create_directories(folder);
  const auto text_of = [](const std::string& path) {
    const Result<YamlDocument> document = read_yaml(path);
    return document ? "read" : to_text(document.error());
  };
  CHECK(text_of(folder + "/none.yaml") ==
        folder + "/none.yaml: error: cannot be opened: No such file or directory");
  CHECK(text_of(folder) == folder + ": error: is a folder, not a file");
  CHECK(text_of("/dev/zero") == "/dev/zero: error: is a device, not a file\n  write it to a file first");

  const std::string empty = folder + "/empty.yaml";
  std::ofstream(empty).flush();
  CHECK(text_of(empty) == empty + ": error: is empty");

  const std::string large = folder + "/large.yaml";
  std::ofstream(large).flush();
  std::filesystem::resize_file(large, std::uintmax_t{1} << 30);  // sparse: takes no room
  const auto start = std::chrono::steady_clock::now();
  CHECK(text_of(large) ==
        large + ": error: is larger than 1.00 MiB\n  is this really the YAML file?");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace spillway
