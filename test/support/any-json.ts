/** JSON whose shape is what a test asserts, so the compiler checks no field of it. */
// biome-ignore lint/suspicious/noExplicitAny: the one place; tests that know the shape declare it.
export type AnyJson = any;
