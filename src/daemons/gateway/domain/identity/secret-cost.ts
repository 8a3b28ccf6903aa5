/** OWASP's minimum for scrypt with N = 2^14 and r = 8: 16 MB and about 30 ms. Tests use a lower one. */
export const SECRET_COST = { N: 16384, r: 8, p: 1 };
