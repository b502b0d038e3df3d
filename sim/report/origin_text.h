// Where a program was read from, as reports name it under their title.
#pragma once

#include <string>

namespace spillway {

/// The path; and where it was picked from a dump folder of several modules, that it was.
std::string origin_text(const std::string& path, std::size_t modules_in_folder);

}  // namespace spillway
