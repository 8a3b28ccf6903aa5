export class OverBudget extends Error {
  constructor() {
    super('it does more than an expression may');
    this.name = 'OverBudget';
  }
}

/**
 * Limit for the work of one evaluation. One unit is about 100 ns. Each expression node, item, or group of eight
 * characters costs one unit.
 */
export class Budget {
  /**
   * Whether the evaluation runs in a thread with limited time and memory. Work of unpredictable cost is allowed only in
   * such a thread.
   */
  readonly isConfined: boolean;
  #left: number;

  constructor(units: number, isConfined: boolean) {
    this.#left = units;
    this.isConfined = isConfined;
  }

  get left(): number {
    return this.#left;
  }

  /** Subtracts units from the budget. Throws OverBudget if the budget is exhausted. */
  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new OverBudget();
  }

  /**
   * Throws OverBudget unless the evaluation runs in a thread with limited time and memory. Must be called before work
   * of unpredictable cost.
   */
  requireConfinement(): void {
    if (!this.isConfined) throw new OverBudget();
  }

  /** Charges the cost of reading a complete value. An object is charged once per reference. */
  spendOn(value: unknown): void {
    const open: unknown[] = [value];
    while (open.length > 0) {
      const one = open.pop();
      this.spend(1);
      if (typeof one === 'string') this.spend(one.length / CHARS_PER_UNIT);
      else if (typeof one === 'object' && one !== null) this.#open(one, open);
    }
  }

  #open(value: object, open: unknown[]): void {
    if (value instanceof Uint8Array) this.spend(value.length / CHARS_PER_UNIT);
    else if (Array.isArray(value)) {
      this.#requireRoomFor(value.length);
      for (const item of value) open.push(item);
    } else if (value instanceof Map) {
      this.#requireRoomFor(value.size);
      for (const item of value.values()) open.push(item);
    } else {
      for (const key in value) {
        this.spend(key.length / CHARS_PER_UNIT);
        open.push((value as Record<string, unknown>)[key]);
      }
    }
  }

  /** Throws OverBudget if the list has more items than budget units are left. */
  #requireRoomFor(items: number): void {
    if (items > this.#left) throw new OverBudget();
  }
}

export const CHARS_PER_UNIT = 8;
