// The traces of XLA's heap simulator in the buffer assignment of an .hlo.pb, and the same of ours.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/program/shape.h"
#include "tests/model/memory/loaded_dump.h"

namespace spillway::testing {

/// What happened in the heap of each memory space, in order: "alloc x", "free x", "share y with x".
using HeapEvents = std::map<MemorySpace, std::vector<std::string>>;

/// XLA's, from an .hlo.pb, gzipped or not; fails the running test when it cannot be read.
HeapEvents read_heap_events(const std::string& path);

/// Those of our own replay of the same program.
HeapEvents replayed_events(const LoadedDump& dump);

}  // namespace spillway::testing
