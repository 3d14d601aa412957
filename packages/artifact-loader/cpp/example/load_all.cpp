// load_all: reads paths from standard input, one a line, and prints for each "loaded" or why it is refused.
#include <fxstack_artifact.h>

#include <iostream>
#include <string>

int main() {
    std::string path;
    char error[1024];
    while (std::getline(std::cin, path)) {
        FxaArtifact *artifact = fxa_load(path.c_str(), error, sizeof(error));
        std::cout << (artifact ? "loaded" : error) << std::endl;
        if (artifact) fxa_unload(artifact);
    }
}
