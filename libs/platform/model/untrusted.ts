/** Data of others for a model, between marks that the data themselves cannot end. Instructions say what the marks mean. */
export function untrusted(data: Readonly<Record<string, unknown>>): string {
  const json = JSON.stringify(data).replaceAll('</', '<\\/');
  return `<untrusted_data>\n${json}\n</untrusted_data>`;
}
