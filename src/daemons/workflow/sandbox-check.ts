/**
 * Keeps that this machine can confine scripts until definitions are registered again, so that most starts of runs need
 * no system call. A failure is not kept, because the operator can remove its cause.
 */
export class SandboxCheck {
  readonly #check: () => Promise<unknown>;
  #passed: Promise<unknown> | undefined;

  /** `check` throws SANDBOX_ERROR if this machine cannot confine scripts. */
  constructor(check: () => Promise<unknown>) {
    this.#check = check;
  }

  /** Throws SANDBOX_ERROR if this machine cannot confine scripts. */
  async require(): Promise<void> {
    this.#passed ??= this.#check();
    const asked = this.#passed;
    try {
      await asked;
    } catch (error) {
      if (this.#passed === asked) this.#passed = undefined;
      throw error;
    }
  }

  /** Makes the next `require` check again. */
  reset(): void {
    this.#passed = undefined;
  }
}
