// What is wrong with a line of XLA flags, or surprising: before a cluster finds out.
//
//   XLA_FLAGS="--xla_gpu_enable_latency_hidng_scheduler=true"    ends the process: unknown
//   XLA_FLAGS="--xla_gpu_memory_limit_slop_factor=95%"           ends the process: no whole number
//   XLA_FLAGS="--xla_dump_to=d \ --xla_dump_hlo_as_text"         reads the first flag alone
#pragma once

#include <vector>

#include "model/base/result.h"
#include "model/diagnostics/diagnostics.h"
#include "model/flags/flag_settings.h"
#include "model/flags/read_flags.h"

namespace spillway {

/// Refused: a version outside of those whose parsers were asked (known_flags.h), since nothing is
/// known of its flags.
std::optional<Error> check_version(const JaxlibVersion& version);

/// Errors end the process before it compiles anything; warnings do something else than what they
/// seem to; the rest has no effect. In this order, then as the flags stand. The context's version
/// is one that check_version lets pass.
std::vector<Diagnostic> check_flags(const FlagText& text, const FlagContext& context);

/// Whether XLA runs with them.
bool has_error(const std::vector<Diagnostic>& findings);

}  // namespace spillway
