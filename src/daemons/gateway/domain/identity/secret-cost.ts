/** scrypt parameters: OWASP's minimum for N = 2^14 and r = 8, which takes 16 MB and about 30 ms. Tests lower them. */
export const SECRET_COST = { N: 16384, r: 8, p: 1 };
