#include "archive.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sha256.hpp"

namespace fxa {
namespace {

constexpr size_t ALIGNMENT = 64, DIGEST = 64, LOCAL = 30, CENTRAL = 46, END = 22, MOST_ENTRIES = 4096, PIECE = 8 << 20;
constexpr const char *MANIFEST = "manifest.json";

Refused damaged(const std::string &what) { return Refused("FXA102", "the artifact is damaged: " + what); }

struct Entry {
    std::string name;
    uint32_t size, crc, offset;
};

uint32_t number(std::string_view from, size_t at, int bytes) {
    if (at > from.size() || from.size() - at < size_t(bytes)) throw damaged("it was cut off");
    uint32_t made = 0;
    for (int i = bytes; i--;) made = made << 8 | (unsigned char)from[at + i];
    return made;
}

void put(std::string &to, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to += char(value >> (8 * i) & 255);
}

// version, flags (UTF-8), stored, no time, the first day that zip knows
void put_fixed(std::string &to, const Entry &entry) {
    for (uint32_t word : {20u, 0x800u, 0u, 0u, 0x21u}) put(to, word, 2);
    for (uint32_t word : {entry.crc, entry.size, entry.size}) put(to, word, 4);
    put(to, uint32_t(entry.name.size()), 2);
}

std::string local_header(const Entry &entry) {
    size_t padding = (ALIGNMENT - (entry.offset + LOCAL + entry.name.size()) % ALIGNMENT) % ALIGNMENT;
    if (padding && padding < 4) padding += ALIGNMENT;
    std::string made("PK\3\4");
    put_fixed(made, entry);
    put(made, uint32_t(padding), 2);
    made += entry.name;
    if (padding) {
        put(made, 0xFA57, 2);
        put(made, uint32_t(padding - 4), 2);
        made.append(padding - 4, '\0');
    }
    return made;
}

std::string tail(const std::vector<Entry> &entries, size_t offset, std::string_view digest) {
    std::string made;
    for (const Entry &entry : entries) {
        made += "PK\1\2";
        put(made, 0x314, 2);
        put_fixed(made, entry);
        made.append(8, '\0');
        put(made, uint32_t(0100644) << 16, 4);
        put(made, entry.offset, 4);
        made += entry.name;
    }
    size_t length = made.size();
    made += "PK\5\6";
    for (size_t word : {size_t(0), size_t(0), entries.size(), entries.size()}) put(made, uint32_t(word), 2);
    for (size_t word : {length, offset}) put(made, uint32_t(word), 4);
    put(made, DIGEST, 2);
    return made.append(digest);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_name(const std::string &name) {
    if (name.empty() || name.size() > 200 || name.back() == '/') return false;
    for (size_t i = 0; i < name.size(); i++) {
        bool begins = i == 0 || name[i - 1] == '/';
        if (!is_letter(name[i]) && (begins || !std::strchr("._-/", name[i]))) return false;
    }
    return true;
}

std::vector<Entry> directory(std::string_view bytes) {
    size_t end = bytes.size() - END - DIGEST;
    size_t count = number(bytes, end + 10, 2), at = number(bytes, end + 16, 4);
    if (bytes.substr(end, 4) != "PK\5\6" || number(bytes, end + 20, 2) != DIGEST || count > MOST_ENTRIES) {
        throw damaged("its end is missing");
    }
    for (char c : bytes.substr(bytes.size() - DIGEST)) {
        if (c & 0x80) throw damaged("its end was changed");
    }
    std::vector<Entry> entries;
    for (size_t i = 0; i < count; i++) {
        uint32_t length = number(bytes, at + 28, 2), offset = number(bytes, at + 42, 4);
        Entry entry{"", number(bytes, at + 24, 4), number(bytes, at + 16, 4), offset};
        bool is_record = bytes.substr(at, 4) == "PK\1\2";
        at += CENTRAL;
        if (!is_record || at > bytes.size()) throw damaged("its directory is broken");
        entry.name = bytes.substr(at, length);
        at += length;
        if (!is_name(entry.name)) throw damaged("its directory is broken");
        entries.push_back(entry);
    }
    return entries;
}

void check_version(const Json &version) {
    int64_t major = version.list().at(0).integer(), minor = version.list().at(1).integer();
    if (major != 1 || minor != 0 || version.list().size() != 2) {
        throw Refused("FXA104", "the artifact is of version " + std::to_string(major) + "." + std::to_string(minor) +
                                    " of the format, this loader reads 1.0");
    }
}

}  // namespace

Archive::Archive(const std::string &path) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw Refused("FXA101", path + " cannot be opened: " + std::strerror(errno));
    struct stat status;
    size_ = fstat(file, &status) ? 0 : size_t(status.st_size);
    void *mapped = size_ ? mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (mapped == MAP_FAILED) throw Refused("FXA101", path + " is empty or cannot be mapped");
    data_ = static_cast<char *>(mapped);
    try {
        if (bytes().substr(0, 4) != "PK\3\4") throw Refused("FXA101", path + " is no artifact of fxstack");
        if (size_ < END + DIGEST) throw damaged("it was cut off");
        check_layout();
        check_contents();
    } catch (...) {
        munmap(data_, size_);
        throw;
    }
}

Archive::~Archive() { munmap(data_, size_); }

void Archive::check_layout() {
    std::vector<Entry> entries = directory(bytes());
    if (entries.empty() || entries[0].name != MANIFEST) throw Refused("FXA101", "a zip file that is no artifact of fxstack");
    size_t offset = 0;
    for (const Entry &entry : entries) {
        std::string header = local_header(entry);
        bool is_here = entry.offset == offset && bytes().substr(offset, header.size()) == header;
        offset += header.size();
        if (!is_here || entry.size > size_ - offset || places_.count(entry.name)) throw damaged("a header was changed");
        places_[entry.name] = {offset, entry.size};
        offset += entry.size;
    }
    if (bytes().substr(offset) != tail(entries, offset, bytes().substr(size_ - DIGEST))) {
        throw damaged("its directory was changed");
    }
}

void Archive::check_contents() {
    Place place = places_.at(MANIFEST);
    std::string_view text = bytes().substr(place.start, place.size);
    if (sha256(text.data(), text.size()) != bytes().substr(size_ - DIGEST)) {
        throw Refused("FXA103", "the manifest of the artifact was changed");
    }
    try {
        manifest_ = parse_json(text);
        if (manifest_["format"].string() != "fxstack artifact") throw Refused("FXA101", "this is no fxstack artifact");
        check_version(manifest_["version"]);
        const Json &contents = manifest_["contents"];
        if (contents.members.size() + 1 != places_.size()) throw damaged("its manifest lists other contents than it has");
        for (const auto &[name, stated] : contents.members) {
            size_t size = 0;
            const char *data = content(name, &size);
            const auto &digests = stated["sha256"].list();
            bool fits = stated["size"].integer() == int64_t(size) && digests.size() == std::max<size_t>(1, (size + PIECE - 1) / PIECE);
            for (size_t i = 0; fits && i < digests.size(); i++) {
                fits = digests[i].string() == sha256(data + i * PIECE, std::min(PIECE, size - i * PIECE));
            }
            if (!fits) throw Refused("FXA103", name + " in the artifact was changed");
        }
    } catch (const std::logic_error &error) {
        throw damaged(std::string("the manifest cannot be read (") + error.what() + ")");
    }
}

char *Archive::content(const std::string &name, size_t *size) const {
    auto found = places_.find(name);
    if (found == places_.end() || name == MANIFEST) throw damaged(name + " is missing");
    *size = found->second.size;
    return data_ + found->second.start;
}

}  // namespace fxa
