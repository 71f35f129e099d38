# Links for systems as old as manylinux_2_28, with what tools/old_system/make.py has put into a folder.

set(GOSSAMER_OLD_SYSTEM "" CACHE PATH "Folder of tools/old_system/make.py; empty: for this system")
if(GOSSAMER_OLD_SYSTEM)
  # The newer parts come first, for libtorch happens to have some of them for itself, and stay inside.
  # What is not called goes. Programs name the libraries that were parts of the C library only later.
  add_link_options(
    -L${GOSSAMER_OLD_SYSTEM} -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--no-as-needed
    -Wl,--whole-archive ${GOSSAMER_OLD_SYSTEM}/libnewer_parts.a -Wl,--no-whole-archive)
  # Those of this machine ask for its C library.
  set(OPENSSL_USE_STATIC_LIBS ON)
  find_library(JPEG_LIBRARY libjpeg.a HINTS ${GOSSAMER_OLD_SYSTEM} REQUIRED)
  find_library(PNG_LIBRARY libpng.a HINTS ${GOSSAMER_OLD_SYSTEM} REQUIRED)
endif()
