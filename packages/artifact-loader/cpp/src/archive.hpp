// The file, as fxstack_artifact.container reads it: mapped, and checked whole before anything is used.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "json.hpp"
#include "mapping.hpp"

namespace fxa {

struct Place {
    size_t start, size;
};

class Archive {
   public:
    // Refused FXA101 to FXA104. The layout, the manifest and every content are checked.
    explicit Archive(const std::string &path);

    // A content where it is mapped, privately; Refused FXA102 if there is none.
    char *content(const std::string &name, size_t *size) const;
    const Json &manifest() const { return manifest_; }
    // What contents lie in: it stays mapped while anybody has it.
    const std::shared_ptr<Mapping> &file() const { return file_; }

   private:
    std::string_view bytes() const { return file_->bytes(); }
    void check_layout();
    void check_contents();

    std::shared_ptr<Mapping> file_;
    std::map<std::string, Place> places_;
    Json manifest_;
};

}  // namespace fxa
