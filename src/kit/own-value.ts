/** The value of a record's own key: a plugin, a tenant or a file may be called "constructor". */
export function ownValue<Value>(values: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(values, key) ? values[key] : undefined;
}
