/* Executes one instruction that only some processors have; INSTRUCTION is given when it is compiled. */
int main(void)
{
    __asm__ volatile(INSTRUCTION);
    return 0;
}
