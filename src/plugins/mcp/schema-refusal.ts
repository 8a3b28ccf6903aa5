/** The schema of a tool is refused. The message is the reason. */
export class Refused extends Error {}
