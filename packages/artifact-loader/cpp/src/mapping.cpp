#include "mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace fxa {

Mapping::Mapping(const std::string &path) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        failure = errno;
        return;
    }
    struct stat status;
    size_t found = fstat(file, &status) ? 0 : size_t(status.st_size);
    if (found) {
        void *mapped = mmap(nullptr, found, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        if (mapped == MAP_FAILED) {
            failure = errno;
        } else {
            data = static_cast<char *>(mapped);
            size = found;
        }
    }
    close(file);
}

Mapping::~Mapping() {
    if (data) munmap(data, size);
}

}  // namespace fxa
