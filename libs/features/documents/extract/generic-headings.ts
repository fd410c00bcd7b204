/** Headings that say nothing without the one above, in the languages that are most common on the web. */
const GENERIC = new Set(
  (
    'about|abstract|arguments|availability|background|caveats|conclusion|contents|default|definition|description|details|' +
    'environment|errors|example|examples|exceptions|faq|files|general|getting started|installation|introduction|methods|' +
    'name|note|notes|options|output|overview|parameters|prerequisites|properties|purpose|references|related|remarks|' +
    'requirements|return value|returns|see also|summary|synopsis|syntax|troubleshooting|usage|use|warning|what is it|' +
    'beispiel|beispiele|beschreibung|einführung|einleitung|hinweise|parameter|siehe auch|überblick|übersicht|verwendung|' +
    'zusammenfassung|description|exemple|exemples|introduction|paramètres|remarques|résumé|syntaxe|utilisation|voir aussi|' +
    'aperçu|descripción|ejemplo|ejemplos|introducción|notas|parámetros|resumen|sintaxis|uso|véase también|exemplo|' +
    'exemplos|introdução|parâmetros|resumo|veja também|введение|описание|обзор|пример|примеры|параметры|примечания|' +
    'синтаксис|см также|использование|简介|介绍|概述|描述|说明|示例|例子|参数|用法|语法|参见|概要|はじめに|説明|例|使い方|使用例|' +
    '構文|引数|関連項目|注意|개요|소개|설명|예제|매개변수|مقدمة|وصف|مثال|أمثلة|ملاحظات|انظر أيضا|نظرة عامة'
  ).split('|'),
);

/** Headings of numbered pages, chapters and figures: `Page 3`, `3.1`. */
const NUMBERED = /^(?:\p{L}+ )?[\p{N} ]+$/u;

/** In lower case, without punctuation. */
export function comparable(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/** @param heading in lower case, without punctuation */
export function isGeneric(heading: string): boolean {
  return heading.length < 2 || GENERIC.has(heading) || NUMBERED.test(heading);
}

const REMARK =
  /^(?:note|notes|warning|tip|hint|caution|important|danger|example|examples|e\.g|i\.e|see also|todo|remark|info|hinweis|achtung|warnung|tipp|wichtig|beispiel|remarque|attention|avertissement|astuce|exemple|nota|importante|advertencia|consejo|ejemplo|aviso|atenção|примечание|внимание|предупреждение|пример|注意|注|例|备注|警告|提示|備考|ヒント|重要)$/iu;

/** Whether the text begins a remark, as in `Note: …`, and names neither a section nor a property. */
export function isRemark(text: string): boolean {
  return REMARK.test(text.trim());
}
