#include "model/hlo/other_formats.h"

#include <algorithm>

namespace spillway::hlo {
namespace {

constexpr const char* kGiveText =
    "give the …after_optimizations.txt that --xla_dump_hlo_as_text writes";
constexpr const char* kCompile =
    "compile with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" and give DIR";

/// Files that begin with this text are that.
struct Beginning {
  std::string_view text;
  const char* what;
  const char* advice;
};

constexpr Beginning kBeginnings[] = {
    {"Failed to serialize HLO module proto",
     "holds XLA's message that the module is too large to be written as a proto, not the module",
     kGiveText},
    {"BufferAssignment:", "is XLA's buffer assignment, not the program", kGiveText},
    {"HloLiveRange", "is XLA's list of live ranges, not the program", kGiveText},
    {"Memory Space:", "is XLA's memory usage report, not the program", kGiveText},
    {"hlo_module {", "is XLA's trace of the scheduler, not the program", kGiveText},
    {"thunk_metadata {", "is XLA's thunk metadata, not the program", kGiveText},
    {"001: k", "is XLA's thunk sequence, not the program", kGiveText},
    {"{", "is JSON, not HLO text", kGiveText},
    {"ML\xefR", "is MLIR bytecode, which XLA has not compiled yet", kCompile},
};

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\f';
}

bool looks_like_mlir(std::string_view start) {
  return start.starts_with("#loc") || start.starts_with("module ") ||
         start.find("module @") != std::string_view::npos ||
         start.find("stablehlo.") != std::string_view::npos ||
         start.find("func.func") != std::string_view::npos;
}

}  // namespace

std::optional<Error> explain_other_format(std::string_view text, const std::string& path) {
  const auto is = [&path](std::string what, std::string advice) {
    return Error{ErrorKind::kInput, std::move(what), {path, {}, {}}, "", std::move(advice)};
  };
  const std::string_view start = text.substr(0, 4096);
  if (start.find_first_not_of(" \t\r\n") == std::string_view::npos && start.size() == text.size())
    return is("holds nothing but blanks", kGiveText);
  for (const Beginning& beginning : kBeginnings)
    if (start.starts_with(beginning.text)) return is(beginning.what, beginning.advice);
  if (std::ranges::any_of(start, is_control)) return is("is binary, not HLO text", kGiveText);
  if (looks_like_mlir(start) && text.find("HloModule") == std::string_view::npos)
    return is("is StableHLO, which XLA has not compiled yet", kCompile);
  return std::nullopt;
}

}  // namespace spillway::hlo
