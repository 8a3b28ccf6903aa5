/** scrypt parameters. Each hash takes 16 MB and about 30 ms. Tests use lower parameters. */
export const SECRET_COST = { N: 16384, r: 8, p: 1 };
