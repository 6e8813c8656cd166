// Compiles modules of HLSL by d3dcompiler_47.dll, under Windows or Wine. Its argument is the file of the DLL.
//
// In, for each module: its bytes as 4 bytes, least significant first, and the text. Out: the HRESULT, the bytes of the
// program, the milliseconds of processor time and the bytes of the message, in 4 bytes each, and the message.

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define ENABLE_STRICTNESS (1u << 11) // the only flag that wgpu gives

typedef struct Blob Blob;
struct Blob {
    struct {
        HRESULT(WINAPI *query)(Blob *, const void *, void **);
        ULONG(WINAPI *add_ref)(Blob *);
        ULONG(WINAPI *release)(Blob *);
        void *(WINAPI *pointer)(Blob *);
        SIZE_T(WINAPI *size)(Blob *);
    } *table;
};

typedef HRESULT(WINAPI *Compile)(const void *, SIZE_T, const char *, const void *, void *, const char *, const char *,
                                 UINT, UINT, Blob **, Blob **);

static unsigned milliseconds(void) {
    FILETIME begun, ended, kernel, user;
    GetProcessTimes(GetCurrentProcess(), &begun, &ended, &kernel, &user);
    unsigned long long ticks = ((unsigned long long)user.dwHighDateTime << 32 | user.dwLowDateTime);
    return (unsigned)(ticks / 10000);
}

int main(int count, char **arguments) {
    HMODULE library = count == 2 ? LoadLibraryA(arguments[1]) : NULL;
    Compile compile = library ? (Compile)(void *)GetProcAddress(library, "D3DCompile") : NULL;
    if (!compile) {
        fprintf(stderr, "the argument is no file of d3dcompiler_47.dll\n");
        return 2;
    }
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
    unsigned size;
    while (fread(&size, 4, 1, stdin) == 1) {
        char *text = malloc(size);
        if (!text || fread(text, 1, size, stdin) != size) {
            return 3;
        }
        Blob *code = NULL, *message = NULL;
        unsigned begin = milliseconds();
        HRESULT result = compile(text, size, NULL, NULL, NULL, "main", "cs_5_1", ENABLE_STRICTNESS, 0, &code, &message);
        unsigned answer[4] = {(unsigned)result, 0, milliseconds() - begin, 0};
        answer[1] = code ? (unsigned)code->table->size(code) : 0;
        answer[3] = message ? (unsigned)message->table->size(message) : 0;
        fwrite(answer, 4, 4, stdout);
        if (message) {
            fwrite(message->table->pointer(message), 1, answer[3], stdout);
            message->table->release(message);
        }
        if (code) {
            code->table->release(code);
        }
        fflush(stdout);
        free(text);
    }
    return 0;
}
