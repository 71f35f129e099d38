# Cross-compiles the torch-free layers for ARM, and runs their tests in an emulator: on Debian 12 with
# g++-12-aarch64-linux-gnu, qemu-user-static and the libraries for arm64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(OPENSSL_SSL_LIBRARY /usr/lib/aarch64-linux-gnu/libssl.so CACHE FILEPATH "")
set(OPENSSL_CRYPTO_LIBRARY /usr/lib/aarch64-linux-gnu/libcrypto.so CACHE FILEPATH "")
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64-static -E LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib)
