// Switches stacks: it pushes the registers that a function has to preserve, then changes the stack pointer.
#if defined(__x86_64__)
asm(R"(
.text
.globl simulator_switch_stacks
.type simulator_switch_stacks, @function
simulator_switch_stacks:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
.size simulator_switch_stacks, .-simulator_switch_stacks
)");
#endif
