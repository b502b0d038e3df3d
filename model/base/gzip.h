// Packs text as gzip. read_file.h unpacks.
#pragma once

#include <string>
#include <string_view>

namespace spillway {

/// A gzip member that holds `text`. The same text gives the same bytes: no name, no time.
std::string gzip(std::string_view text);

}  // namespace spillway
